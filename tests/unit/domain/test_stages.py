"""Stages of a chain: their first look, and how a stage stands by its steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_step

from subagents_nb.domain.plans.plan import AttachedItem, FanOutItem, GroupItem, StepItem
from subagents_nb.domain.runs.stages import Stage, stage_of, state_of
from subagents_nb.domain.runs.states import StepState

S = StepState
STEPS = (
    make_step(index=0, output_name="found", title="Look"),
    make_step(index=1),
    make_step(index=2, agent="writer"),
)


def test_a_step_is_called_by_its_title_else_by_its_agent() -> None:
    assert stage_of(StepItem(step=0), STEPS) == Stage(kind="step", label="Look", steps=(0,), output_name="found")
    assert stage_of(StepItem(step=1), STEPS).label == "scout"


def test_a_group_is_called_by_its_title_else_by_its_agents() -> None:
    group = GroupItem(steps=(1, 2), concurrency=3, output_name="both")
    assert stage_of(group, STEPS) == Stage(
        kind="parallel", label="scout, writer", steps=(1, 2), output_name="both", concurrency=3
    )
    assert stage_of(group.model_copy(update={"title": "Together"}), STEPS).label == "Together"
    assert stage_of(group.model_copy(update={"steps": (0, 1)}), STEPS).label == "2 × scout"


def test_a_group_of_many_kinds_names_three() -> None:
    steps = tuple(make_step(index=n, agent=f"a{n}") for n in range(4))
    assert stage_of(GroupItem(steps=(0, 1, 2, 3), concurrency=4), steps).label == "a0, a1, a2 …"


def test_a_fan_out_says_what_it_expands_and_how_far_and_has_no_steps_yet() -> None:
    item = FanOutItem(template=STEPS[1], source="found", path="/files", max_items=5, concurrency=2, output_name="all")
    stage = stage_of(item, ())
    assert (stage.kind, stage.label, stage.steps) == ("expand", "scout for each", ())
    assert (stage.source, stage.max_items, stage.concurrency, stage.output_name) == ("found", 5, 2, "all")
    assert stage_of(item.model_copy(update={"template": STEPS[0]}), ()).label == "Look"


def test_an_attached_run_is_named() -> None:
    stage = stage_of(AttachedItem(attached_run="r-1", output_name="before"), ())
    assert (stage.kind, stage.label, stage.attached_run, stage.output_name) == (
        "attached",
        "attached run",
        "r-1",
        "before",
    )


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ([], S.PENDING),
        ([S.PENDING, S.PENDING], S.PENDING),
        ([S.RUNNING, S.FAILED], S.RUNNING),
        ([S.COMPLETE, S.PENDING], S.RUNNING),
        ([S.SKIPPED, S.PENDING], S.RUNNING),
        ([S.COMPLETE, S.COMPLETE], S.COMPLETE),
        ([S.FAILED, S.FAILED], S.FAILED),
        ([S.FAILED, S.COMPLETE], S.PARTIAL),
        ([S.FAILED, S.SKIPPED], S.FAILED),
        ([S.STOPPED, S.COMPLETE], S.PARTIAL),
        ([S.STOPPED, S.FAILED], S.FAILED),
        ([S.REJECTED, S.COMPLETE, S.FAILED], S.REJECTED),
        ([S.PAUSED, S.COMPLETE], S.PAUSED),
        ([S.SKIPPED, S.SKIPPED], S.SKIPPED),
        ([S.SKIPPED, S.COMPLETE], S.PARTIAL),
        ([S.PARTIAL, S.COMPLETE], S.PARTIAL),
    ],
)
def test_a_stage_stands_as_its_steps_do(states: list[StepState], state: StepState) -> None:
    assert state_of(states) is state


@given(st.lists(st.sampled_from(list(S)), min_size=1))
def test_the_order_of_the_steps_does_not_matter_and_alike_steps_give_their_own_state(states: list[StepState]) -> None:
    assert state_of(states) is state_of(sorted(states)) is state_of(iter(states))
    assert state_of(states[:1] * len(states)) is states[0]


@given(st.lists(st.sampled_from(list(S)), min_size=1))
def test_a_stage_is_complete_only_when_all_of_it_is(states: list[StepState]) -> None:
    assert (state_of(states) is S.COMPLETE) == (set(states) == {S.COMPLETE})
