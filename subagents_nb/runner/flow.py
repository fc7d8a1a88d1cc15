"""Carry out the items of a chain in their order: steps, groups, fan-outs, and what is appended meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from subagents_nb.domain.flow import OnFailure
from subagents_nb.domain.placeholders import MissingField, as_text
from subagents_nb.domain.plan import AttachedItem, FanOutItem, GroupItem, PlanItem, StepItem, StepPlan
from subagents_nb.domain.records import Actor, NamedOutput, Reason, StepResult
from subagents_nb.domain.stages import Stage, stage_of
from subagents_nb.domain.states import RunState, StepState
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.runner.attached import AttachedFailed, attached_output
from subagents_nb.runner.bindings import Bindings
from subagents_nb.runner.causes import FROM_WITHIN, Cause
from subagents_nb.runner.collecting import CollectProblem, aggregate, collected
from subagents_nb.runner.crew import Crew
from subagents_nb.runner.fanning import fan_out
from subagents_nb.runner.gate import Gate
from subagents_nb.runner.stages import Stages
from subagents_nb.runner.work import StepWork, Workshop
from subagents_nb.store.claims import admit, open_budget


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """How a run ended by its own course."""

    state: RunState
    reason: Reason | None = None
    error: str | None = None
    actor: Actor = "self"


class ChainBroken(Exception):
    """The chain can't go on: why, for the run's last word."""

    def __init__(self, end: FlowEnd) -> None:
        super().__init__(end.error)
        self.end = end


@dataclass(slots=True)
class Appended:
    """What was appended to a live chain: items over steps that have their numbers from 0."""

    items: tuple[PlanItem, ...]
    steps: tuple[StepPlan, ...]
    names: frozenset[str] = field(default_factory=frozenset)


_ACTORS: dict[str, Actor] = {"timeout": "deadline", "budget": "budget"}


class Flow:
    """One run's items, carried out. Everything but `append` and `drain` belongs to the event loop."""

    def __init__(self, shop: Workshop, crew: Crew) -> None:
        plan = shop.plan
        self._shop = shop
        self._crew = crew
        self._items: deque[PlanItem] = deque(plan.items or (StepItem(step=0),))
        self._place = 0
        self._places = Gate(lambda: shop.limits.max_parallel)
        self._gates = [self._places]
        self._guard = threading.Lock()
        self._appended: deque[Appended] = deque()
        self._closed = False
        self._names = {name for item in plan.items for name in _names_of(item, plan.steps)}
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.draining = False
        self._fell_short = False
        self.bindings = Bindings(plan, shop.journal.result_of)

    # --- from other threads ---

    def append(self, more: Appended) -> str | None:
        """Take items in behind the last one; return why not, if not."""
        with self._guard:
            if self._closed or self.draining:
                return "the chain is at its end already"
            taken = sorted(more.names & self._names)
            if taken:
                return f"there is an output {taken[0]!r} already"
            self._names |= more.names
            self._appended.append(more)
            waiting = len(self._appended)
        self._shop.journal.stages(lambda _: None, pending_appends=waiting)
        return None

    def drain(self) -> None:
        """Finish what is at work and start nothing new."""
        self.draining = True

    def retuned(self) -> None:
        """Let in who may come in under the new limits."""
        for gate in self._gates:
            self._loop.call_soon_threadsafe(gate.look)

    def end(self, cause: Cause) -> None:
        """End everything."""
        self._crew.end_all(cause)
        self._loop.call_soon_threadsafe(self._ending.set)

    # --- on the event loop ---

    async def carry_out(self) -> FlowEnd:
        """Carry the items out and return how that went. A cause that ended the run from outside is not looked at."""
        plan = self._shop.plan
        if plan.is_flow:
            try:
                open_budget(self._shop.writer.paths, limit=plan.max_children)
            except StoreError as error:
                return FlowEnd(RunState.FAILED, "fan-out", str(error))
        try:
            while (item := self._next()) is not None:
                await self._carry(item)
                self._place += 1
        except ChainBroken as broken:
            self._close()
            return broken.end
        if self._ending.is_set() and (self._items or not self._all_complete()):
            return FlowEnd(RunState.FAILED, "internal", FROM_WITHIN.message)  # whoever ended it says why
        if self.draining and self._items:
            return FlowEnd(RunState.PARTIAL, "drained", "Drained on request: what was at work is done.", "person")
        if self._fell_short:
            return FlowEnd(RunState.PARTIAL, "child", self._shortfall())
        return FlowEnd(RunState.COMPLETE)

    def _next(self) -> PlanItem | None:
        if self._ending.is_set():
            self._close()
            return None
        self._take_appended()
        if self.draining or not self._items:
            self._close()
            return None
        return self._items.popleft()

    def _all_complete(self) -> bool:
        results = (self._shop.journal.result_of(work.step.index) for work in self._crew.all)
        return all(result is not None and result.state is StepState.COMPLETE for result in results)

    def _close(self) -> None:
        with self._guard:
            self._closed = True

    def _take_appended(self) -> None:
        while True:
            with self._guard:
                if not self._appended:
                    # Closed under the same guard, so that nothing is taken in and then forgotten.
                    if not self._items:
                        self._closed = True
                    return
                more = self._appended.popleft()
                waiting = len(self._appended)
            base = self._crew.next_index
            steps = tuple(step.model_copy(update={"index": step.index + base}) for step in more.steps)
            items = [_moved(item, base) for item in more.items]
            stages = [stage_of(item, steps) for item in items]
            self._shop.journal.add_steps(steps)
            self._crew.add(steps)
            self._shop.journal.stages(partial(_add, stages), pending_appends=waiting)
            self._items.extend(items)

    async def _carry(self, item: PlanItem) -> None:
        match item:
            case StepItem():
                await self._one(item)
            case GroupItem():
                works = [self._crew.work(index) for index in item.steps]
                self._admit(len(works))
                results = await self._together(works, item.concurrency, item.fail_fast)
                self.bindings.name([work.step for work in works])
                self._went(item.on_failure, results, item.title or "the parallel group")
                self.bindings.became(item.output_name, NamedOutput(text=aggregate(results)))
            case FanOutItem():
                await self._expand(item)
            case AttachedItem():
                await self._attach(item)

    async def _one(self, item: StepItem) -> None:
        work = self._crew.work(item.step)
        self._admit(1)
        (result,) = await self._together([work], 1, fail_fast=False)
        if result.state is not StepState.COMPLETE:
            raise ChainBroken(self._ended_by(result))
        self.bindings.name([work.step])
        self.bindings.became(None, NamedOutput(step=item.step))

    async def _expand(self, item: FanOutItem) -> None:
        place = self._place
        try:
            source = self.bindings.value_of(item.source)
            made = fan_out(item, source, first_index=self._crew.next_index, place=place + 1)
            self._admit(len(made.steps))
        except ChainBroken as broken:
            self._stage_failed(place, broken.end.error or "")
            raise
        except ValueError as error:
            self._stage_failed(place, str(error))
            text = f"The fan-out over {item.source!r} could not begin: {error}."
            raise ChainBroken(FlowEnd(RunState.FAILED, "fan-out", text)) from error
        journal = self._shop.journal
        journal.add_steps(made.steps, [f"{one.key}" for one in made.items])
        self._crew.add(made.steps)
        indices = [step.index for step in made.steps]
        journal.stages(lambda stages: stages.hold(place, indices))
        if not indices:
            journal.stages(lambda stages: stages.set(place, StepState.COMPLETE))
        works = [self._crew.work(index) for index in indices]
        values = {step.index: one.value for step, one in zip(made.steps, made.items, strict=True)}
        results = await self._together(works, item.concurrency, item.fail_fast, item=(item.item, values))
        self._went(item.on_failure, results, item.title or "the fan-out")
        try:
            value = collected(item, made.items, results)
        except CollectProblem as error:
            self._stage_failed(place, str(error))
            raise ChainBroken(FlowEnd(RunState.FAILED, error.reason, str(error))) from error
        self.bindings.became(item.output_name, NamedOutput(text=as_text(value), has_value=True, value=value))

    async def _attach(self, item: AttachedItem) -> None:
        place, journal = self._place, self._shop.journal
        journal.stages(lambda stages: stages.set(place, StepState.RUNNING))
        try:
            output = await attached_output(self._shop.writer.paths, item.attached_run, self._ending)
        except AttachedFailed as error:
            self._stage_failed(place, str(error))
            raise ChainBroken(FlowEnd(RunState.FAILED, "attached", str(error))) from error
        if output is not None:
            journal.stages(lambda stages: stages.set(place, StepState.COMPLETE))
            self.bindings.became(item.output_name, output)

    async def _together(
        self,
        works: Sequence[StepWork],
        concurrency: int,
        fail_fast: bool,
        *,
        item: tuple[str, dict[int, Any]] | None = None,
    ) -> list[StepResult]:
        seats = Gate(lambda: self._shop.limits.seats(concurrency))
        self._gates = [self._places, seats]
        failed = False

        async def one(work: StepWork) -> StepResult:
            nonlocal failed
            async with seats, self._places:
                skip = self._why_not(work, failed and fail_fast)
                if skip is not None:
                    return self._skipped(work, *skip)
                value = None if item is None else (item[0], item[1][work.step.index])
                task = partial(self.bindings.task_for, work.step, item=value)
                try:
                    task(self._shop.plan.cwd)  # whether it can be made; with the step's own directory once there is one
                except MissingField as error:
                    result = self._skipped(work, "placeholder", f"{error}.", StepState.FAILED)
                else:
                    result = await work.carry_out(task)
                # A child that the person stopped is no failure of the group.
                failed = failed or result.state in (StepState.FAILED, StepState.REJECTED)
                return result

        async with self._shop.worktrees.group([work.step for work in works]):
            return list(await asyncio.gather(*(one(work) for work in works)))

    def _why_not(self, work: StepWork, failed_fast: bool) -> tuple[Reason, str] | None:
        if work.cause is not None or self._ending.is_set():
            return None  # it says itself how it was ended
        if failed_fast:
            return "fail-fast", "Not started, since a step beside it failed."
        if self.draining:
            return "drained", "Not started, since the run was drained."
        if not self._shop.limits.may_start():
            return "budget", "Not started, since the usage budget is used up."
        return None

    def _skipped(self, work: StepWork, reason: Reason, text: str, state: StepState = StepState.SKIPPED) -> StepResult:
        draft = self._shop.journal.draft(work.step.index)
        result = draft.model_copy(update={"state": state, "reason": reason, "error": text})
        self._shop.journal.step_ended(result)
        work.inbox.close()
        return result

    # --- what came of it ---

    def _went(self, on_failure: OnFailure, results: Sequence[StepResult], what: str) -> None:
        bad = [r for r in results if r.state is not StepState.COMPLETE]
        if not bad or self._ending.is_set():
            return
        self._fell_short = True
        failed = [r for r in bad if r.state in (StepState.FAILED, StepState.REJECTED)]
        spent = next((r for r in bad if r.reason == "budget"), None)
        if spent is not None:
            raise ChainBroken(FlowEnd(RunState.FAILED, "budget", spent.error, "budget"))
        if failed and on_failure == "stop":
            first = failed[0]
            text = f"{len(failed)} of {len(results)} steps of {what} failed; step {first.index}: {first.error}"
            rejected = all(r.state is StepState.REJECTED for r in failed)
            state = RunState.REJECTED if rejected else RunState.FAILED
            raise ChainBroken(FlowEnd(state, "rejected" if rejected else "child", text))

    def _ended_by(self, result: StepResult) -> FlowEnd:
        single = not self._shop.plan.is_flow
        where = "" if single else f"Step {result.index} ({result.label or result.agent}): "
        error = None if result.error is None else where + result.error
        match result.state:
            case StepState.STOPPED:
                return FlowEnd(RunState.STOPPED, "stopped", error, "person")
            case StepState.REJECTED:
                return FlowEnd(RunState.REJECTED, result.reason, error)
            case StepState.SKIPPED if result.reason == "drained":
                return FlowEnd(RunState.PARTIAL, "drained", "Drained on request: what was at work is done.", "person")
            case _:
                return FlowEnd(RunState.FAILED, result.reason, error, _ACTORS.get(result.reason or "", "self"))

    def _shortfall(self) -> str:
        results = [self._shop.journal.result_of(work.step.index) for work in self._crew.all]
        bad = [r for r in results if r is not None and r.state is not StepState.COMPLETE]
        shown = ", ".join(f"step {r.index} {r.state}" for r in bad[:5])
        return f"{len(bad)} of {len(results)} steps did not complete: {shown}" + (" …" if len(bad) > 5 else ".")

    def _stage_failed(self, place: int, error: str) -> None:
        self._shop.journal.stages(lambda stages: stages.set(place, StepState.FAILED, error))

    def _admit(self, count: int) -> None:
        paths = self._shop.writer.paths
        if not self._shop.plan.is_flow or not count:
            return
        try:
            slots = admit(paths, count, path=f"{paths.root.name}/stage {self._place + 1}")
        except (RequestError, StoreError) as error:
            raise ChainBroken(FlowEnd(RunState.FAILED, "fan-out", str(error), "budget")) from error
        self._shop.journal.stages(lambda _: None, fan_out_used=slots[-1] + 1)


def _add(more: Sequence[Stage], stages: Stages) -> None:
    stages.add(more)


def _names_of(item: PlanItem, steps: Sequence[StepPlan]) -> set[str]:
    by_index = {step.index: step for step in steps}
    names = {item.output_name} if not isinstance(item, StepItem) else {by_index[item.step].output_name}
    if isinstance(item, GroupItem):
        names |= {by_index[index].output_name for index in item.steps}
    return {name for name in names if name}


def names_of(items: Sequence[PlanItem], steps: Sequence[StepPlan]) -> frozenset[str]:
    """Return the names that items give to outputs."""
    return frozenset(name for item in items for name in _names_of(item, steps))


def _moved(item: PlanItem, base: int) -> PlanItem:
    match item:
        case StepItem():
            return item.model_copy(update={"step": item.step + base})
        case GroupItem():
            return item.model_copy(update={"steps": tuple(index + base for index in item.steps)})
        case _:
            return item
