"""Plan a chain that goes on as a whole: what is done stands, what was at work goes on, what waited follows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from subagents_nb.domain.plans.plan import (
    Draft,
    FanOutItem,
    GroupItem,
    LaunchPlan,
    PlanItem,
    StepItem,
    StepPlan,
    choices_of,
)
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.plans.resumed import GoingOn, Resumes, Taken
from subagents_nb.domain.runs.control import AppendedItems, Appendix
from subagents_nb.domain.runs.records import StepResult, StepStatus
from subagents_nb.domain.runs.resuming import Places, is_done, taken_over
from subagents_nb.domain.runs.reuse import GOES_ON, lasting_notes
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.launch_environment import LaunchEnvironment
from subagents_nb.planning.resuming.limits_left import LimitsLeft
from subagents_nb.planning.resuming.revival import gone_on, refusals, tree_of
from subagents_nb.planning.steps.step_plan import model_problem

_SHOWN_STEPS = 12
Outcome = StepResult | StepStatus


def draft_whole(
    revival: Revival,
    plan: LaunchPlan,
    appended: Appendix | None,
    snapshot: Snapshot,
    outcomes: Mapping[int, Outcome],
    *,
    environment: LaunchEnvironment,
    sessions: Container[int],
    spent: Spent,
) -> Draft:
    """Return the plan of a new run that goes on with a whole chain, of which `outcomes` says how each step ended.

    Limits are what is left of those in force at the end, as for a run of one step. What the chain may start in all is
    inherited with what it started.

    Raises:
        LaunchRefused: with every reason found.
    """
    reasons = refusals(revival, plan, snapshot, environment)
    stages = snapshot.stages
    taken = taken_over(stages, {index: one.state for index, one in outcomes.items()}, sessions=sessions)
    before = plan.resumes.chain if plan.resumes is not None else None
    if not reasons and before is not None and plan.resumes is not None and len(taken) < len(before.stages):
        source = plan.resumes.run_id
        raise LaunchRefused([f"{plan.name} ended before it had taken over what was done; resume {source} once more"])
    if not reasons and is_done(stages, taken):
        raise LaunchRefused([_nothing_left(plan, snapshot, outcomes)])
    steps, items = plan.steps, plan.items
    if appended is not None:
        steps, items = (*steps, *appended.steps), (*items, *appended.items)
    limits = LimitsLeft(revival, plan, snapshot, reasons, spent=spent)
    of_run, changed = limits.of_run(), limits.of_steps_to_come()
    by_index = {step.index: step for step in steps}
    had = before.stages if before is not None else ()

    def left(place: int, order: int, one: Taken) -> Taken:
        if one.how != "goes-on":
            return one
        earlier = next(iter(had[place][order : order + 1]), None) if place < len(had) else None
        return limits.of_step(one, _planned(items[place], order, by_index), earlier, outcomes[one.step])

    places = tuple(tuple(left(place, order, one) for order, one in enumerate(held)) for place, held in enumerate(taken))
    reasons.extend(_model_problems(steps, items, places, environment))
    if reasons:
        raise LaunchRefused(list(dict.fromkeys(reasons)))
    concurrency = limits.retuned.concurrency
    status = snapshot.status
    admitted = max(sum(map(len, places)), status.fan_out_used if status is not None else 0, spent.runs)
    continuation = GoingOn(text=revival.text, stages=places, admitted=admitted)
    return gone_on(
        revival,
        plan,
        mode=plan.mode if appended is None else "chain",
        steps=tuple(step.model_copy(update=changed) for step in steps),
        items=tuple(_limited(item, changed, concurrency) for item in items),
        max_parallel=concurrency or plan.max_parallel,
        **of_run,
        notes=(*lasting_notes(plan.notes), _note(plan, places)),
        resumes=Resumes(run_id=plan.run_id, digest=plan.digest, chain=continuation, tree=tree_of(plan)),
    )


def appended_to(plan: LaunchPlan, record: AppendedItems | None, stages: Sequence[Stage]) -> Appendix | None:
    """Return all that was appended to a chain, its steps numbered behind those of the plan.

    Raises:
        LaunchRefused: the chain has more stages than anybody wrote down.
    """
    taken = record.taken if record is not None else None
    known = len(plan.items) + (len(taken.items) if taken is not None else 0)
    if len(stages) > known:
        raise LaunchRefused([f"what was appended to {plan.name} was not written down, so it can't be gone on with"])
    appendix: Appendix | None = None
    for part in (taken, *(record.waiting if record is not None else ())):
        if part is not None:
            base = len(plan.steps) + (len(appendix.steps) if appendix is not None else 0)
            places = {step.index: base + order for order, step in enumerate(part.steps)}
            moved = part.numbered(places.__getitem__)
            appendix = moved if appendix is None else appendix.then(moved)
    return appendix


def step_of(plan: LaunchPlan, record: AppendedItems | None, stages: Sequence[Stage], index: int) -> StepPlan | None:
    """Return the plan of a step by its number in the run: also of one that a fan-out or an append added."""
    taken = record.taken if record is not None else None
    steps, items = plan.steps, plan.items
    if taken is not None:
        steps, items = (*steps, *taken.steps), (*items, *taken.items)
    found = next((step for step in steps if step.index == index), None)
    if found is None:
        place = next((place for place, stage in enumerate(stages) if index in stage.steps), len(items))
        item = items[place] if place < len(items) else None
        found = item.template.model_copy(update={"index": index}) if isinstance(item, FanOutItem) else None
    return found


def numbers(outcomes: Mapping[int, Outcome]) -> str:
    """Return the steps of a run by number and name, to choose from."""
    shown = [f"steps[{index}] ({one.label or one.agent})" for index, one in sorted(outcomes.items())]
    return ", ".join(shown[:_SHOWN_STEPS]) + (" …" if len(shown) > _SHOWN_STEPS else "")


def _planned(item: PlanItem, order: int, steps: Mapping[int, StepPlan]) -> StepPlan:
    match item:
        case StepItem():
            return steps[item.step]
        case GroupItem():
            return steps[item.steps[order]]
        case FanOutItem():
            return item.template
    raise AssertionError("an attached run has no steps")


def _limited(item: PlanItem, changed: Mapping[str, Any], concurrency: int | None) -> PlanItem:
    update: dict[str, Any] = {}
    if concurrency is not None and isinstance(item, GroupItem | FanOutItem):
        update["concurrency"] = concurrency
    if isinstance(item, FanOutItem):
        update["template"] = item.template.model_copy(update=dict(changed))
    return item.model_copy(update=update)


def _model_problems(
    steps: Sequence[StepPlan], items: Sequence[PlanItem], places: Places, environment: LaunchEnvironment
) -> Iterator[str]:
    """Yield why models can't be used here and now, of what is still to be done."""
    done = len(places) - 1 if places and any(one.how != "stands" for one in places[-1]) else len(places)
    rest = items[done:]
    wanted = {n for item in rest for n in ((item.step,) if isinstance(item, StepItem) else getattr(item, "steps", ()))}
    for choice in choices_of([step for step in steps if step.index in wanted], rest):
        if (problem := model_problem(choice, environment)) is not None:
            yield problem


def _nothing_left(plan: LaunchPlan, snapshot: Snapshot, outcomes: Mapping[int, Outcome]) -> str:
    if snapshot.state is RunState.COMPLETE:
        return f"{plan.name} is a chain: say which step to go on from: {numbers(outcomes)}"
    error = f" ({snapshot.error.rstrip('.')})" if snapshot.error else ""
    return (
        f"no step of {plan.name} is left to go on with as a chain{error}; say which step to go on from: "
        f"{numbers(outcomes)}"
    )


def _note(plan: LaunchPlan, places: Places) -> str:
    hows = [one.how for steps in places for one in steps]
    stand, on = hows.count("stands"), hows.count("goes-on")
    note = f"{on} goes on" if on == 1 else f"{on} go on" if on else "none was at work, so nobody is told the text"
    return f"{GOES_ON}{plan.name}: {stand} {'step stands' if stand == 1 else 'steps stand'}, {note}."
