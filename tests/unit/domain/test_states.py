"""The life of a run: every state met with every event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.states import IllegalTransition, RunEvent, RunState, advance, event_to

ENDS = {"fail": "failed", "stop": "stopped", "reject": "rejected", "lose": "lost"}
ALLOWED = {
    "queued": {"proceed": "running", **ENDS},
    "running": {"complete": "complete", "fall-short": "partial", "pause": "paused", **ENDS},
    "paused": {"stop": "stopped"},
}
EVERY = [(state, event) for state in RunState for event in RunEvent]


@pytest.mark.parametrize(("state", "event"), EVERY, ids=[f"{s}-{e}" for s, e in EVERY])
def test_a_state_follows_an_event_exactly_where_the_diagram_says_so(state: RunState, event: RunEvent) -> None:
    target = ALLOWED.get(state, {}).get(event)
    if target is None:
        with pytest.raises(IllegalTransition, match=f"a {state} run can't {event}"):
            advance(state, event)
    else:
        assert advance(state, event) is RunState(target)


def test_every_state_is_reached_from_queued() -> None:
    reached, grew = {RunState.QUEUED}, True
    while grew:
        more = {RunState(t) for s in reached for t in ALLOWED.get(s, {}).values()} - reached
        reached |= more
        grew = bool(more)
    assert reached == set(RunState)


def test_terminal_live_and_ended_divide_the_states() -> None:
    assert {s for s in RunState if s.live} == {RunState.QUEUED, RunState.RUNNING}
    assert {s for s in RunState if s.ended and not s.terminal} == {RunState.PAUSED}
    assert all(s.live != s.ended for s in RunState)


@given(st.lists(st.sampled_from(list(RunEvent)), max_size=30))
def test_no_sequence_of_events_leaves_a_terminal_state(events: list[RunEvent]) -> None:
    state, ended = RunState.QUEUED, None
    for event in events:
        try:
            state = advance(state, event)
        except IllegalTransition:
            continue
        assert ended is None, f"{ended} was left by {event}"
        ended = state if state.terminal else None


def test_each_end_of_a_live_run_has_the_event_that_leads_to_it() -> None:
    for state in RunState:
        if state.ended:
            assert advance(RunState.RUNNING, event_to(state)) is state
        else:
            with pytest.raises(IllegalTransition):
                event_to(state)
