"""Plan a chain: number its steps, resolve each, and refuse before the start whatever can be known to go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.flow import MAX_CONCURRENCY, Attached, Chain, Expand, Parallel, Step
from subagents_nb.domain.plans.plan import (
    AttachedItem,
    FanOutItem,
    GroupItem,
    Mode,
    PlanItem,
    StepItem,
    StepPlan,
)
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.domain.values.reasons import NO_EARLIER_OUTPUT, OF_THE_RUN, Reasons
from subagents_nb.domain.values.schemas import validator_of
from subagents_nb.planning.acceptance.group_acceptance import plan_together, reporting
from subagents_nb.planning.acceptance.terms import words_for_people
from subagents_nb.planning.output_references import UNKNOWN, Names, check_key, check_template, source_problem
from subagents_nb.planning.steps.plan_context import PlanContext
from subagents_nb.planning.steps.step_plan import plan_step, with_deadline


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """The steps by their numbers and the items that put them in order."""

    mode: Mode
    steps: tuple[StepPlan, ...]
    items: tuple[PlanItem, ...]


def plan_flow(
    flow: Chain, context: PlanContext, reasons: Reasons, *, limit: int, names: Names | None = None
) -> PlannedFlow:
    """Return the plan of a chain; what is wrong with it is added to the reasons, each with the place it is at.

    With `names` it continues a chain that already has those outputs: it is appended, so nothing in it comes first.
    `limit` is how many steps it may start in all.
    """
    planner = _Planner(context, reasons, names or Names(), appended=names is not None)
    planner.task = flow.task
    items = [item for place, asked in enumerate(flow.items, start=1) if (item := planner.item(place, asked))]
    if planner.names.used and items and isinstance(items[0], AttachedItem):
        items[0] = items[0].model_copy(update={"outputs": tuple(sorted(planner.names.used))})
    if not flow.items:
        reasons.append("the chain has no steps")
    started = len(planner.steps)
    if started > limit:
        mend = "append fewer; a later launch may allow more" if planner.appended else "allow more"
        reasons.at(OF_THE_RUN).append(
            f"the chain starts {started} steps, more than the {limit} a run may start; {mend}, with --max-children or "
            "max_children="
        )
    only_group = len(flow.items) == 1 and isinstance(flow.items[0], Parallel) and not planner.appended
    return PlannedFlow("parallel" if only_group else "chain", tuple(planner.steps), tuple(items))


@dataclass(slots=True)
class _Planner:
    context: PlanContext
    reasons: Reasons
    names: Names
    appended: bool
    next_index: int = 0
    task: str | None = None
    steps: list[StepPlan] = field(default_factory=list)

    def item(self, place: int, asked: Step | Parallel | Expand | Attached) -> PlanItem | None:
        """Plan one item of the chain; `place` counts from 1."""
        first = place == 1 and not self.appended
        match asked:
            case Step():
                return self._single(place, asked, first)
            case Parallel():
                return self._group(place, asked, first)
            case Expand():
                return self._fan_out(place, asked, first)
            case Attached():
                return self._attached(place, asked, first)

    def _single(self, place: int, asked: Step, first: bool) -> PlanItem | None:
        reasons = self.reasons.at(str(place), f"stage {place}" + (f" ({asked.agent})" if asked.agent else ""))
        if asked.count != 1:
            reasons.append(f"count is {asked.count!r}; only the steps of a parallel group have copies")
        step = self._step(reasons, asked, first)
        self.names.add(asked.as_, reasons, schema=step.output_schema if step else asked.output_schema)
        return StepItem(step=step.index) if step else None

    def _group(self, place: int, asked: Parallel, first: bool) -> PlanItem | None:
        reasons = self.reasons.at(str(place), f"stage {place} (parallel group)")
        if not asked.steps:
            reasons.append("the group is empty")
        planned: list[tuple[Reasons, StepPlan]] = []
        planned_members: list[tuple[Reasons, str | None, Any]] = []
        for number, (member, copies) in enumerate(self._copies(reasons, asked.steps), start=1):
            one = _with_group(member, asked)
            number_of = f"{place}.{number}"
            inner = self.reasons.at(number_of, f"stage {number_of}" + (f" ({one.agent})" if one.agent else ""))
            folder = f"parallel-{place}/{number}-{one.agent or 'agent'}"
            step = self._step(inner, one, first, namespace=folder)
            if copies > 1 and one.as_:
                inner.append(f"{copies} copies can't all be named {one.as_!r}")
            if step is not None:
                planned.append((inner, step))
            if copies == 1:
                planned_members.append((inner, one.as_, step.output_schema if step else one.output_schema))
        # Siblings can't see each other's outputs: the names exist from here on.
        for inner, name, schema in planned_members:
            self.names.add(name, inner, schema=schema)
        self.names.add(asked.as_, reasons, schema=None)
        self._same_outputs(planned)
        acceptance = self._together(reasons, asked, [step for _, step in planned])
        steps = tuple(step.index for _, step in planned)
        if not steps:
            return None
        if acceptance is not None:
            self.steps = [reporting(step, acceptance) if step.index in steps else step for step in self.steps]
        return GroupItem(steps=steps, **self._of_several(reasons, asked, acceptance))

    def _of_several(self, reasons: Reasons, asked: Parallel | Expand, whole: Acceptance | None) -> dict[str, Any]:
        return {
            "concurrency": self._concurrency(reasons, asked.concurrency),
            "fail_fast": asked.fail_fast,
            "on_failure": asked.on_failure,
            "output_name": asked.as_,
            "title": asked.label or "",
            "acceptance": whole,
            **words_for_people(asked),
        }

    def _together(self, reasons: Reasons, asked: Parallel | Expand, members: list[StepPlan]) -> Acceptance | None:
        own = reasons.at("")
        acceptance = plan_together(asked, members, self.context.terms, own)
        return None if own else acceptance

    def _copies(self, reasons: Reasons, steps: tuple[Step, ...]) -> Iterator[tuple[Step, int]]:
        for step in steps:
            if step.count < 1:
                reasons.append(f"count is {step.count}; it is a whole number from 1")
            for _ in range(min(max(step.count, 1), 1000)):
                yield step, step.count

    def _fan_out(self, place: int, asked: Expand, first: bool) -> PlanItem | None:
        reasons = self.reasons.at(str(place), f"stage {place} (fan-out)")
        source, each = asked.from_, asked.each
        if first:
            reasons.append(
                "a chain can't begin with a fan-out: there is no earlier output to expand", code=NO_EARLIER_OUTPUT
            )
        else:
            problem = source_problem(source.output, source.path, self.names)
            if problem:
                reasons.append(problem)
        most = asked.max_items if asked.max_items is not None else self.context.settings.max_items
        if most is None:
            reasons.append("max_items is missing: say how many items it may expand to at most")
        elif most < 0:
            reasons.append(f"max_items is {most}; it is a whole number from 0")
        for problem in check_key(asked.item, asked.key):
            reasons.append(problem)
        for name, value in (("as", each.as_), ("worktree", each.worktree), ("count", each.count != 1 or None)):
            if value is not None:
                reasons.append(f"{name} is for the fan-out itself, not for the step it repeats")
        if asked.collect_schema is not None and (problem := _collect_problem(asked.collect_schema)):
            reasons.append(problem)
        each = _with_group(each, asked)
        template = self._step(reasons, each, first=False, item=asked.item, template=True)
        self.names.add(asked.as_, reasons, schema=COLLECTED)
        acceptance = self._together(reasons, asked, [] if template is None else [template])
        if template is None or most is None or most < 0:
            return None
        if acceptance is not None:
            template = reporting(template, acceptance)
        return FanOutItem(
            template=template,
            source=source.output,
            path=source.path,
            item=asked.item,
            key=asked.key,
            max_items=most,
            on_empty=asked.on_empty,
            collect_schema=asked.collect_schema,
            **self._of_several(reasons, asked, acceptance),
        )

    def _attached(self, place: int, asked: Attached, first: bool) -> PlanItem | None:
        reasons = self.reasons.at(str(place), f"stage {place} (attached run)")
        if not first:
            reasons.append("only the beginning of a chain can be another run")
        environment = self.context.environment
        if environment.attached_problem is not None or not is_run_id(asked.run):
            reasons.append(environment.attached_problem or f"there is no run {asked.run!r} to attach to")
            # What refers to it has no fault of its own.
            self.names.add(asked.as_, reasons, schema=UNKNOWN)
            return None
        self.names.attached = environment.attached_outputs
        self.names.add(asked.as_, reasons, schema=environment.attached_schema)
        return AttachedItem(attached_run=asked.run, step=asked.step, output_name=asked.as_, title=asked.label or "")

    def _step(
        self,
        around: Reasons,
        asked: Step,
        first: bool,
        *,
        namespace: str | None = None,
        item: str | None = None,
        template: bool = False,
    ) -> StepPlan | None:
        reasons = around.at("")
        task = asked.task
        if task is None:
            task = "{previous}" if not first else "{task}" if self.task else None
        if task is None:
            reasons.append("the first step needs a task")
            task = "-"
        reasons.extend(check_template(task, self.names, first=first, item=item, has_task=bool(self.task) or not first))
        step = plan_step(
            asked.model_copy(update={"task": task}),
            self.context.at(around.place, around.lead),
            reasons,
            index=-1 if template else self.next_index,
            namespace=namespace,
        )
        if step is None or reasons:
            return None
        step = with_deadline(step, self.context.settings)
        if not template:
            self.steps.append(step)
            self.next_index += 1
        return step

    def _concurrency(self, reasons: Reasons, asked: int | None) -> int:
        width = self.context.settings.group_concurrency if asked is None else asked
        if not 1 <= width <= MAX_CONCURRENCY:
            reasons.append(f"concurrency is {width}; it is a whole number from 1 to {MAX_CONCURRENCY}")
            return 1
        return width

    def _same_outputs(self, planned: list[tuple[Reasons, StepPlan]]) -> None:
        seen: dict[str, Reasons] = {}
        for reasons, step in planned:
            if step.output is None or step.worktree is not None:
                continue
            other = seen.setdefault(step.output.path, reasons)
            if other is not reasons:
                both = f"{other.lead} and {reasons.lead}"
                self.reasons.at(other.place).append(f"{both} would both write {step.output.path!r}; give each its own")


# What a fan-out collects, one entry an item, in the order of the items.
COLLECTED: dict[str, Any] = {"type": "array", "items": {"type": "object"}}


def _with_group(step: Step, group: Parallel | Expand) -> Step:
    """Return a step with what its group says where it says nothing."""
    names = ("worktree", "phase", "agent_contract", "gate_on")
    of_group = {name: getattr(group, name) for name in names if getattr(step, name) is None}
    # No worktree of a group is none of its steps; but that no contract holds is something it says.
    inherited = {name: one for name, one in of_group.items() if one or (name == "agent_contract" and one is not None)}
    return step.model_copy(update=inherited) if inherited else step


def _collect_problem(schema: dict[str, Any]) -> str | None:
    if schema.get("type", "array") != "array":
        return f"the schema of what is collected is for an array, not for {schema.get('type')!r}"
    try:
        validator_of(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"the schema of what is collected is no valid JSON Schema: {str(error).splitlines()[0]}"
    return None
