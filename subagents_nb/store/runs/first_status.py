"""The status with which a run begins: queued, by whoever launches it."""

from __future__ import annotations

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.records import Identity, RunHead, RunStatus, first_step
from subagents_nb.domain.runs.stages import stage_of
from subagents_nb.store.clock import utc_now

# What a run is told to be and to keep to: said of it while it lives, and when it has ended.
_PLANNED = RunHead.model_fields.keys() & LaunchPlan.model_fields.keys() - {"kind"}


def first_status(
    plan: LaunchPlan, *, runner: Identity | None = None, queue_keeper: Identity | None = None
) -> RunStatus:
    """Return the status that the launcher writes: queued, with the process that waits or that keeps its turn."""
    return RunStatus(
        **{name: getattr(plan, name) for name in _PLANNED},
        runner=runner,
        queue_keeper=queue_keeper,
        started_at=plan.created_at,
        updated_at=utc_now(),
        steps=tuple(first_step(step) for step in plan.steps),
        stages=tuple(stage_of(item, plan.steps) for item in plan.items),
    )
