"""The outputs of a chain that exists and that have names, for items that refer to them from outside."""

from __future__ import annotations

from collections.abc import Sequence

from subagents_nb.domain.plans.plan import AttachedItem, FanOutItem, GroupItem, LaunchPlan, StepItem
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.planning.chain_plan import COLLECTED
from subagents_nb.planning.output_references import UNKNOWN, Names


def names_of(plan: LaunchPlan, snapshot: Snapshot) -> Names:
    """Return the outputs of a live chain that have names, those of what was appended before included."""
    names = Names()
    for item in plan.items:
        match item:
            case StepItem():
                _know_steps(names, plan, (item.step,))
            case GroupItem():
                _know_steps(names, plan, item.steps)
                _know(names, item.output_name, None)
            case FanOutItem():
                _know(names, item.output_name, COLLECTED)
            case AttachedItem():
                for name in (item.output_name, *item.outputs):
                    _know(names, name, UNKNOWN)
    for stage in snapshot.stages:
        _know(names, stage.output_name, _schema_of(stage))
    for step in snapshot.status.steps if snapshot.status is not None else ():
        _know(names, step.output_name, UNKNOWN)  # appended: only its runner has its schema
    return names


def _schema_of(stage: Stage) -> dict[str, object] | None:
    return {"expand": COLLECTED, "parallel": None}.get(stage.kind, UNKNOWN)


def _know_steps(names: Names, plan: LaunchPlan, numbers: Sequence[int]) -> None:
    for step in plan.steps:
        if step.index in numbers:
            _know(names, step.output_name, step.output_schema)


def _know(names: Names, name: str | None, schema: dict[str, object] | None) -> None:
    if name is not None:
        names.schemas.setdefault(name, schema)
