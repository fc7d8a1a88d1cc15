"""How a step's status follows from what its engine reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.runs.events import (
    EngineEvent,
    ModelAsked,
    ModelNamed,
    Noticed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
    fold,
)
from subagents_nb.domain.runs.records import RECENT_TOOLS, TAIL_CHARS, StepStatus, Usage

CALLS = st.sampled_from([f"c{n}" for n in range(8)])
EVENTS: st.SearchStrategy[EngineEvent] = st.one_of(
    st.builds(ModelAsked, st.integers(1, 9)),
    st.builds(TextStreamed, st.text(max_size=30) | st.just("x" * 3000)),
    st.builds(ThoughtStreamed, st.text(max_size=10)),
    st.builds(ToolStarted, CALLS, st.sampled_from(["read", "bash"]), st.text(max_size=300)),
    st.builds(ToolEnded, CALLS, st.booleans(), st.floats(0, 1e3), refused=st.none() | st.just("no")),
    st.builds(UsageChanged, st.builds(Usage, input_tokens=st.integers(0, 10**9))),
    st.builds(ModelNamed, st.text(max_size=10)),
    st.builds(Noticed, st.just("code"), st.text(max_size=10)),
)


@given(st.lists(EVENTS, max_size=60))
def test_whatever_an_engine_reports_the_status_stays_bounded_and_true(events: list[EngineEvent]) -> None:
    step = StepStatus(agent="a", model="m")
    text, refused = "", 0
    for event in events:
        before = step.model_dump()
        after = fold(step, event)
        assert step.model_dump() == before, "a fold changed what it was given"
        step = after
        text += event.text if isinstance(event, TextStreamed) else ""
        refused += isinstance(event, ToolEnded) and event.refused is not None
        assert step.tail == text[-TAIL_CHARS:]
        assert step.tail_end == len(text)
        assert step.refusals == refused
        assert len(step.tools) <= RECENT_TOOLS
        assert all(len(row.args) <= 160 and "\n" not in row.args for row in step.tools)
    assert StepStatus.model_validate_json(step.model_dump_json()) == step
    usages = [e.usage for e in events if isinstance(e, UsageChanged)]
    assert step.usage == (usages[-1] if usages else Usage())


def test_a_tool_is_the_activity_until_it_ends_and_keeps_its_row() -> None:
    step = fold(StepStatus(agent="a", model="m"), ToolStarted("c", "bash", "ls\n  -l"))
    assert (step.activity, step.tools[0].state, step.tools[0].args) == ("bash", "running", "ls -l")
    step = fold(step, ToolEnded("c", ok=False, seconds=1.23456))
    assert (step.activity, step.tools[0].state, step.tools[0].seconds) == ("", "failed", 1.235)


def test_of_two_tools_at_once_the_one_still_running_is_the_activity() -> None:
    step = fold(StepStatus(agent="a", model="m"), ToolStarted("1", "read", ""))
    step = fold(step, ToolStarted("2", "bash", ""))
    assert fold(step, ToolEnded("2", ok=True, seconds=0)).activity == "read"


def test_a_cost_is_known_only_if_every_part_knows_its_own() -> None:
    paid, unknown, nothing = Usage(requests=1, cost_usd=0.5), Usage(requests=1), Usage()
    assert paid.plus(paid).cost_usd == 1.0
    assert paid.plus(unknown).cost_usd is None
    assert paid.plus(nothing).cost_usd == 0.5
    assert nothing.plus(nothing).cost_usd is None
