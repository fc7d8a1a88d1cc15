"""The lives of runs, steps, requests and questions: every state met with every event, and no other way to set one."""

from __future__ import annotations

import ast
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_result, make_status

import subagents_nb
from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import StepStatus
from subagents_nb.domain.runs.states import (
    QUESTION,
    REQUEST,
    RUN,
    STEP,
    IllegalTransition,
    Lifecycle,
    QuestionEvent,
    QuestionState,
    RequestEvent,
    RequestState,
    RunEvent,
    RunState,
    StepEvent,
    StepState,
)

PACKAGE = Path(subagents_nb.__file__).parent
DOCS = PACKAGE.parent / "docs" / "states.md"
ENDS = {"fail": "failed", "stop": "stopped", "reject": "rejected", "lose": "lost"}
STEP_ENDS = {"fail": "failed", "stop": "stopped", "pause": "paused"}
HEARD = {"queue": "queued", "accept": "accepted", "refuse": "refused", "miss": "too-late"}
ALLOWED: dict[str, dict[str, dict[str, str]]] = {
    "run": {
        "queued": {"proceed": "running", **ENDS},
        "running": {"complete": "complete", "fall-short": "partial", "pause": "paused", **ENDS},
        "paused": {"stop": "stopped"},
    },
    "step": {
        "pending": {"begin": "running", "skip": "skipped", "carry": "complete", **STEP_ENDS},
        "running": {"complete": "complete", "reject": "rejected", **STEP_ENDS},
        "complete": {"reject": "rejected", "redo": "pending"},
        "stopped": {"redo": "pending"},
    },
    "request": {"asked": HEARD, "queued": {**HEARD, "deliver": "delivered"}},
    "question": {"open": {"answer": "answered", "close": "closed"}},
}
LIVES: list[tuple[Lifecycle[Any, Any], type[StrEnum], type[StrEnum]]] = [
    (RUN, RunState, RunEvent),
    (STEP, StepState, StepEvent),
    (REQUEST, RequestState, RequestEvent),
    (QUESTION, QuestionState, QuestionEvent),
]
EVERY: list[tuple[Lifecycle[Any, Any], StrEnum, StrEnum]] = [
    (life, state, event) for life, states, events in LIVES for state in states for event in events
]


def test_a_state_follows_an_event_exactly_where_the_diagram_says_so() -> None:
    for life, state, event in EVERY:
        target = ALLOWED[life.what].get(state, {}).get(event)
        try:
            follows, told = life.follow(state, event), ""
        except IllegalTransition as error:
            follows, told = None, str(error)
        assert follows == target, f"{event} of a {state} {life.what}"
        assert target is not None or f"no {state} {life.what} can {event}" in told


@pytest.mark.parametrize(("life", "states", "_events"), LIVES)
def test_every_state_is_reached_from_the_first(
    life: Lifecycle[Any, Any], states: type[StrEnum], _events: object
) -> None:
    reached, grew = {str(next(iter(states)))}, True
    while grew:
        more = {target for state in reached for target in ALLOWED[life.what].get(state, {}).values()} - reached
        reached |= more
        grew = bool(more)
    assert reached == {str(state) for state in states} - ({"partial"} if life is STEP else set())


def test_terminal_live_and_ended_divide_the_states() -> None:
    assert {s for s in RunState if s.live} == {RunState.QUEUED, RunState.RUNNING}
    assert {s for s in RunState if s.ended and not s.terminal} == {RunState.PAUSED}
    assert all(s.live != s.ended for s in RunState)


@given(st.lists(st.sampled_from(list(RunEvent)), max_size=30))
def test_a_run_walks_its_table_and_leaves_no_terminal_state(events: list[RunEvent]) -> None:
    status, ended = make_status(state=RunState.QUEUED), None
    for event in events:
        before = status.state
        try:
            status = status.to(event, notes=(event,))
        except IllegalTransition:
            assert event not in ALLOWED["run"].get(before, {})
            assert status.state is before
            continue
        assert ended is None, f"{ended} was left by {event}"
        assert (status.state, status.notes) == (ALLOWED["run"][before][event], (event,))
        ended = status.state if status.state.terminal else None


@given(st.lists(st.sampled_from(list(StepEvent)), max_size=30))
def test_a_step_walks_its_table(events: list[StepEvent]) -> None:
    step = StepStatus(agent="scout", model="m")
    for event in events:
        wanted = ALLOWED["step"].get(step.state, {}).get(event)
        try:
            step = step.to(event)
        except IllegalTransition:
            assert wanted is None
        else:
            assert step.state == wanted


@pytest.mark.parametrize("state", list(StepState))
def test_a_step_that_works_ends_only_as_its_table_says(state: StepState) -> None:
    working = StepStatus(agent="scout", model="m").to(StepEvent.BEGIN)
    result = make_result().steps[0].model_copy(update={"state": state})
    if state is StepState.RUNNING or state in ALLOWED["step"]["running"].values():
        assert working.ended(result).state is state
    else:
        with pytest.raises(IllegalTransition, match=f"no running step can become {state}"):
            working.ended(result)


def test_no_verdict_is_over_a_run_that_has_its_own_last_word() -> None:
    said = {"run_id": "r", "reason": "vanished", "message": "gone", "judged_at": "now", "judged_by": "sweep"}
    assert Verdict.over(RunState.RUNNING, RunEvent.LOSE, **said).state is RunState.LOST
    assert Verdict.over(RunState.PAUSED, RunEvent.STOP, **said).state is RunState.STOPPED
    with pytest.raises(IllegalTransition, match="no complete run can lose"):
        Verdict.over(RunState.COMPLETE, RunEvent.LOSE, **said)


def test_an_answer_that_was_given_is_never_taken_back() -> None:
    said = {"run_id": "r", "request_id": "a", "answered_at": "now"}
    queued = ControlAnswer.after(RequestState.ASKED, RequestEvent.QUEUE, **said)
    delivered = queued.to(RequestEvent.DELIVER, text="told")
    assert (delivered.outcome, delivered.text, delivered.request_id) == ("delivered", "told", "a")
    with pytest.raises(IllegalTransition, match="no delivered request can miss"):
        delivered.to(RequestEvent.MISS)
    with pytest.raises(IllegalTransition, match="no asked request can deliver"):
        ControlAnswer.after(RequestState.ASKED, RequestEvent.DELIVER, **said)


@pytest.mark.parametrize(("life", "states", "_events"), LIVES)
def test_the_drawing_in_the_docs_is_made_from_the_table(
    life: Lifecycle[Any, Any], states: type[StrEnum], _events: object
) -> None:
    assert f"```mermaid\n{life.drawing(next(iter(states)))}\n```" in DOCS.read_text(encoding="utf-8")


# --- nobody else sets a state ---

_RECORDS = {"RunStatus", "RunResult", "StepStatus", "StepResult", "Verdict", "Stage"}
_RECORDS |= {"ControlAnswer", "SteerReceipt", "Reply"}
_STATES = {states.__name__ for _, states, _ in LIVES}
_FIELDS = {"state", "outcome", "closed"}


def test_no_state_is_set_outside_domain() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if PACKAGE / "domain" not in path.parents]
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in files for line in states_set(path.read_text("utf-8"))]
    assert found == [], "set it by the move of its table: record.to(event), ControlAnswer.after(was, event)"


@pytest.mark.parametrize(
    ("code", "sets"),
    [
        ("status.model_copy(update={'state': state})", True),
        ("status.model_copy(update={**more, 'state': RunState.FAILED})", True),
        ("changed = {'state': RunState.FAILED}", True),
        ("self._update(state=StepState.SKIPPED)", True),
        ("self._update(state=state)", True),
        ("Verdict(state='lost')", True),
        ("StepResult(agent=a, state=found)", True),
        ("ControlAnswer(outcome='accepted')", True),
        ("ControlAnswer.model_validate({**said, 'outcome': 'refused'})", True),
        ("answer.model_copy(update={'outcome': late})", True),
        ("Reply.model_validate({**said, 'closed': True})", True),
        ("answer.outcome is RequestState.QUEUED", False),
        ("self._line('steering', {'outcome': receipt.outcome})", False),
        ("Receipt(outcome, text)", False),
        ("record.model_copy(update={'state': 'ready'})", False),  # of a worktree: plain words
        ("self._line('run-ended', {'state': status.state})", False),
        ("RunFailed(text, state=str(result.state))", False),
        ("launching.runs(state='live')", False),
    ],
)
def test_the_check_knows_a_state_that_is_set(code: str, sets: bool) -> None:
    assert bool(states_set(code)) is sets


def states_set(code: str) -> list[int]:
    """Return the lines in which a state of one of the tables is set by hand."""
    return [node.lineno for node in ast.walk(ast.parse(code)) if isinstance(node, ast.expr) and sets_state(node)]


def sets_state(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        return any(is_state(value) for value in values_of(node))
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = [keyword.value for keyword in node.keywords if keyword.arg in _FIELDS]
    update = [
        v for k in node.keywords if k.arg == "update" and isinstance(k.value, ast.Dict) for v in values_of(k.value)
    ]
    if name in ("model_copy", "_update"):
        return any(not isinstance(value, ast.Constant) for value in [*given, *update])
    if name == "model_validate" and getattr(getattr(node.func, "value", None), "id", "") in _RECORDS:
        return any(values_of(given) for given in node.args if isinstance(given, ast.Dict))
    return bool(given) if name in _RECORDS else any(map(is_state, given))


def values_of(node: ast.Dict) -> list[ast.expr]:
    return [
        v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value in _FIELDS
    ]


def is_state(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in _STATES for node in ast.walk(value))
