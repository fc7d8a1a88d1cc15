"""How the steps of a chain follow one another, as status shows it: stages from left to right, steps within them.

A step keeps its number for life: those of the plan come first, the ones that a fan-out or an append adds follow in the
order in which they were added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.plans.plan import AttachedItem, FanOutItem, GroupItem, PlanItem, StepItem, StepPlan
from subagents_nb.domain.runs.states import StepState
from subagents_nb.domain.values.base import Value


class Stage(Value):
    """One item of a chain."""

    kind: Literal["step", "parallel", "expand", "attached"]
    label: str
    state: StepState = StepState.PENDING
    steps: tuple[int, ...] = ()
    output_name: str | None = None
    # Of a fan-out: which output it expands and how far it may; empty before its items are known.
    source: str | None = None
    max_items: int | None = None
    concurrency: int | None = None
    attached_run: str | None = None
    error: str | None = None
    phase: str = ""
    acceptance: Ledger | None = None  # the verdict over all of it, where one was asked for

    def at(self, state: StepState) -> Stage:
        """Return the stage in a state: it has no life of its own, its steps or its judge say where it stands."""
        return self.model_copy(update={"state": state})


def stage_of(item: PlanItem, steps: Iterable[StepPlan]) -> Stage:
    """Return the stage of a planned item, before anything of it began."""
    by_index = {step.index: step for step in steps}
    match item:
        case StepItem():
            step = by_index[item.step]
            return Stage(
                kind="step",
                label=step.title or step.agent,
                steps=(item.step,),
                output_name=step.output_name,
                phase=step.phase,
            )
        case GroupItem():
            label = item.title or _together([by_index[index].agent for index in item.steps])
            return Stage(
                kind="parallel",
                label=label,
                steps=item.steps,
                phase=item.phase,
                output_name=item.output_name,
                concurrency=item.concurrency,
            )
        case FanOutItem():
            return Stage(
                kind="expand",
                label=item.title or item.template.title or f"{item.template.agent} for each",
                phase=item.phase or item.template.phase,
                output_name=item.output_name,
                source=item.source,
                max_items=item.max_items,
                concurrency=item.concurrency,
            )
        case AttachedItem():
            label = item.title or "attached run"
            return Stage(kind="attached", label=label, output_name=item.output_name, attached_run=item.attached_run)


def state_of(states: Iterable[StepState]) -> StepState:
    """Return the state of a stage from those of its steps: at work, then what went wrong, then the rest."""
    present = list(states)
    if not present:
        return StepState.PENDING
    if StepState.RUNNING in present:
        return StepState.RUNNING
    ended = [state for state in present if state is not StepState.PENDING]
    if ended and len(ended) < len(present):
        return StepState.RUNNING
    for state in (StepState.REJECTED, StepState.FAILED, StepState.PAUSED, StepState.STOPPED, StepState.PARTIAL):
        if state in present:
            others = any(s is StepState.COMPLETE for s in present)
            return StepState.PARTIAL if others and state in (StepState.STOPPED, StepState.FAILED) else state
    if all(state is StepState.SKIPPED for state in present):
        return StepState.SKIPPED
    if StepState.SKIPPED in present and StepState.COMPLETE in present:
        return StepState.PARTIAL
    return StepState.COMPLETE if StepState.COMPLETE in present else present[0]


def _together(agents: list[str]) -> str:
    kinds = list(dict.fromkeys(agents))
    return f"{len(agents)} × {kinds[0]}" if len(kinds) == 1 else ", ".join(kinds[:3]) + (" …" if len(kinds) > 3 else "")
