"""Carry out the items of a chain in their order: steps, groups, fan-outs, and what is appended meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from subagents_nb.domain.plans.flow import OnFailure
from subagents_nb.domain.plans.placeholders import MissingField, as_text
from subagents_nb.domain.plans.plan import AttachedItem, FanOutItem, GroupItem, PlanItem, StepItem
from subagents_nb.domain.runs.control import Appendix
from subagents_nb.domain.runs.records import EndReason, NamedOutput, StepResult
from subagents_nb.domain.runs.stages import stage_of
from subagents_nb.domain.runs.states import RunEvent, StepEvent, StepState
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.runner.chains.accepting_all import AcceptingAll, fails
from subagents_nb.runner.chains.appended import AT_ITS_END, Appendices
from subagents_nb.runner.chains.attached import AttachedFailed, attached
from subagents_nb.runner.chains.before import Before
from subagents_nb.runner.chains.bindings import Bindings
from subagents_nb.runner.chains.chain_ends import DRAINED, ChainBroken, ChainEnd, end_after, end_of, shortfall
from subagents_nb.runner.chains.collecting import CollectProblem, aggregate, collected
from subagents_nb.runner.chains.fanning import fan_out
from subagents_nb.runner.chains.semaphore import AdjustableSemaphore
from subagents_nb.runner.chains.step_registry import StepRegistry
from subagents_nb.runner.journal.stage_progress import Stages
from subagents_nb.runner.steps.causes import FROM_WITHIN, Cause
from subagents_nb.runner.steps.step_context import RunServices
from subagents_nb.runner.steps.step_run import StepWork
from subagents_nb.store.waiting.admissions import admit, open_budget


class ChainRun:
    """One run's items, carried out. Everything but `append` and `drain` belongs to the event loop."""

    def __init__(self, services: RunServices, registry: StepRegistry, before: Before) -> None:
        plan = services.plan
        self._services = services
        self._registry = registry
        self._items: deque[PlanItem] = deque(plan.items or (StepItem(step=0),))
        self._place = 0
        self._places = AdjustableSemaphore(lambda: services.limits.max_parallel)
        self._gates = [self._places]
        self._before = before
        self._appended = Appendices(plan, services.writer)
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.draining = False
        self._fell_short = False
        self._cut_short = False  # a stage that was complete was not judged any more
        self._not_accepted: list[str] = []  # stages that were not accepted as a whole
        self.bindings = Bindings(plan, lambda index: services.journal.accounts[index].result)

    # --- from other threads ---

    def append(self, more: Appendix) -> str | None:
        """Take items in behind the last one; return why not, if not."""
        why = AT_ITS_END if self.draining else self._appended.put(more)
        if why is None:
            self._services.journal.stages(lambda _: None, pending_appends=self._appended.waiting)
        return why

    def drain(self) -> None:
        """Finish what is at work and start nothing new."""
        self.draining = True

    def retuned(self) -> None:
        """Let in who may come in under the new limits."""
        for gate in self._gates:
            self._loop.call_soon_threadsafe(gate.look)

    def end(self, cause: Cause) -> None:
        """End everything."""
        # First of all, so that no later item begins on what the ended steps leave.
        self._loop.call_soon_threadsafe(self._ending.set)
        self._registry.end_all(cause)

    # --- on the event loop ---

    async def carry_out(self) -> ChainEnd:
        """Carry the items out and return how that went. A cause that ended the run from outside is not looked at."""
        plan = self._services.plan
        if plan.is_flow:
            try:
                open_budget(self._services.writer.paths, limit=plan.max_children)
                self._admit(self._before.admitted)
            except ChainBroken as broken:
                return broken.end
            except StoreError as error:
                return ChainEnd(RunEvent.FAIL, "fan-out", str(error))
        try:
            while (item := self._next()) is not None:
                await self._carry(item)
                self._place += 1
        except ChainBroken as broken:
            self._appended.close()
            return broken.end
        if self._ending.is_set() and (self._items or self._cut_short or not self._all_complete()):
            return ChainEnd(RunEvent.FAIL, "internal", FROM_WITHIN.message)  # whoever ended it says why
        if self.draining and self._items:
            return DRAINED
        if self._fell_short:
            return ChainEnd(RunEvent.FALL_SHORT, "child", shortfall(self._results(), self._not_accepted))
        return ChainEnd(RunEvent.COMPLETE)

    def _next(self) -> PlanItem | None:
        if not self._ending.is_set():
            self._take_appended()
        if self._ending.is_set() or self.draining or not self._items:
            self._appended.close()
            return None
        return self._items.popleft()

    def _all_complete(self) -> bool:
        results = (self._services.journal.accounts[work.step.index].result for work in self._registry.all)
        return all(result is not None and result.state is StepState.COMPLETE for result in results)

    def _take_appended(self) -> None:
        while (more := self._appended.take(self._registry.next_index, last=not self._items)) is not None:
            stages = [stage_of(item, more.steps) for item in more.items]
            self._services.journal.add_steps(more.steps)
            self._registry.add(more.steps)
            self._services.journal.stages(partial(Stages.add, stages=stages), pending_appends=self._appended.waiting)
            self._items.extend(more.items)

    async def _carry(self, item: PlanItem) -> None:
        match item:
            case StepItem():
                await self._single(item)
            case GroupItem():
                works = [self._registry.work(index) for index in item.steps]
                self._admit_here(len(works))
                accepting = await self._accepting(item)
                results = await self._together(works, item.concurrency, item.fail_fast)
                self.bindings.name([work.step for work in works])
                await self._judged(item, accepting, works, results, item.title or "the parallel group")
                self.bindings.became(item.output_name, NamedOutput(text=aggregate(results)))
            case FanOutItem():
                await self._expand(item)
            case AttachedItem():
                await self._attach(item)

    async def _single(self, item: StepItem) -> None:
        work = self._registry.work(item.step)
        self._admit_here(1)
        (result,) = await self._together([work], 1, fail_fast=False)
        if result.state is not StepState.COMPLETE:
            raise ChainBroken(end_of(result, single=not self._services.plan.is_flow))
        self.bindings.name([work.step])
        self.bindings.became(None, NamedOutput(step=item.step))

    async def _expand(self, item: FanOutItem) -> None:
        place = self._place
        try:
            source = self.bindings.value_of(item.source)
            fanned = fan_out(item, source, first_index=self._registry.next_index, place=place + 1)
            self._admit_here(len(fanned.steps))
        except ChainBroken as broken:
            self._stage_failed(place, broken.end.error or "")
            raise
        except ValueError as error:
            self._stage_failed(place, str(error))
            text = f"The fan-out over {item.source!r} could not begin: {error}."
            raise ChainBroken(ChainEnd(RunEvent.FAIL, "fan-out", text)) from error
        journal = self._services.journal
        journal.add_steps(fanned.steps, [f"{one.key}" for one in fanned.items])
        indices = [step.index for step in fanned.steps]
        self._before.expect(place, indices)
        self._registry.add(fanned.steps)
        journal.stages(lambda stages: stages.hold(place, indices))
        if not indices:
            journal.stages(lambda stages: stages.set(place, StepState.COMPLETE))
        works = [self._registry.work(index) for index in indices]
        accepting = await self._accepting(item) if works else None
        values = {step.index: one.value for step, one in zip(fanned.steps, fanned.items, strict=True)}
        results = await self._together(works, item.concurrency, item.fail_fast, item=(item.item, values))
        await self._judged(item, accepting, works, results, item.title or "the fan-out")
        try:
            value = collected(item, fanned.items, results, run_dir=self._services.writer.paths.root)
        except CollectProblem as error:
            self._stage_failed(place, str(error))
            raise ChainBroken(ChainEnd(RunEvent.FAIL, error.reason, str(error))) from error
        self.bindings.became(item.output_name, NamedOutput(text=as_text(value), has_value=True, value=value))

    async def _attach(self, item: AttachedItem) -> None:
        place, journal = self._place, self._services.journal
        journal.stages(lambda stages: stages.set(place, StepState.RUNNING))
        try:
            attachment = await attached(self._services.writer.paths, item, self._ending)
        except AttachedFailed as error:
            self._stage_failed(place, str(error))
            raise ChainBroken(ChainEnd(RunEvent.FAIL, "attached", str(error))) from error
        if attachment is not None:
            journal.stages(lambda stages: stages.set(place, StepState.COMPLETE))
            self.bindings.attached = attachment.outputs
            self.bindings.became(item.output_name, attachment.answer)

    async def _together(
        self,
        works: Sequence[StepWork],
        concurrency: int,
        fail_fast: bool,
        *,
        item: tuple[str, dict[int, Any]] | None = None,
    ) -> list[StepResult]:
        seats = AdjustableSemaphore(lambda: self._services.limits.concurrency(concurrency))
        self._gates = [self._places, seats]
        failed = False

        async def one(work: StepWork) -> StepResult:
            nonlocal failed
            async with seats, self._places:
                skip = self._skip_reason(work, failed and fail_fast)
                if skip is not None:
                    return self._skipped(work, *skip)
                value = None if item is None else (item[0], item[1][work.step.index])
                task = partial(self.bindings.task_for, work.step, item=value)
                try:
                    task(
                        self._services.plan.cwd
                    )  # whether it can be made; with the step's own directory once there is one
                except MissingField as error:
                    result = self._skipped(work, "placeholder", f"{error}.", StepEvent.FAIL)
                else:
                    result = await work.carry_out(task, said=self._before.resume_text(work.step.index))
                # A child that the person stopped is no failure of the group.
                failed = failed or result.state in (StepState.FAILED, StepState.REJECTED)
                return result

        standing = [work for work in works if self._before.stands(work.step.index)]
        if standing:
            await asyncio.to_thread(self._take_over, standing)
        fresh = [work for work in works if work not in standing]
        for work in fresh:
            self._before.bring(work.step)
        async with self._services.worktrees.group([work.step for work in fresh]):
            done = dict(zip(fresh, await asyncio.gather(*map(one, fresh)), strict=True))
        return [done[work] if work in done else self._stood(work) for work in works]

    def _take_over(self, works: Sequence[StepWork]) -> None:
        for work in works:
            try:
                result = self._before.result(work.step.index)
            except StoreError as error:
                raise ChainBroken(ChainEnd(RunEvent.FAIL, "setup", str(error))) from error
            if result.worktree is not None:
                self._services.worktrees.take_over(result.worktree)
            work.stand()
            self._services.journal.step_carried(result)

    def _stood(self, work: StepWork) -> StepResult:
        result = self._services.journal.accounts[work.step.index].result
        return result if result is not None else self._services.journal.draft(work.step.index)

    def _skip_reason(self, work: StepWork, failed_fast: bool) -> tuple[EndReason, str] | None:
        if work.cause is not None or self._ending.is_set():
            return None  # it says itself how it was ended
        if failed_fast:
            return "fail-fast", "Not started, since a step beside it failed."
        if self.draining:
            return "drained", "Not started, since the run was drained."
        if not self._services.limits.may_start():
            return "budget", "Not started, since the usage budget is used up."
        return None

    def _skipped(self, work: StepWork, reason: EndReason, text: str, event: StepEvent = StepEvent.SKIP) -> StepResult:
        result = self._services.journal.draft(work.step.index).to(event, reason=reason, error=text)
        self._services.journal.step_ended(result)
        work.inbox.close()
        return result

    # --- what came of it ---

    async def _accepting(self, item: GroupItem | FanOutItem) -> AcceptingAll | None:
        """Begin what judges a stage as a whole. Until that is done the stage is at work, whatever its steps are."""
        if item.acceptance is None:
            return None
        place, accepting = self._place, AcceptingAll(item.acceptance, self._services)
        self._services.journal.stages(lambda stages: stages.set(place, StepState.RUNNING))
        await accepting.note_staged()
        return accepting

    async def _judged(
        self,
        item: GroupItem | FanOutItem,
        accepting: AcceptingAll | None,
        works: Sequence[StepWork],
        results: Sequence[StepResult],
        what: str,
    ) -> None:
        """Go on with what a group came to, or not: by its steps, then by the verdict over all of them."""
        place, asked, ledger = self._place, item.acceptance, None
        if accepting is not None and not self._ending.is_set():
            ledger = await accepting.judge(works, results, self._ending)
        if ledger is None or asked is None:
            if accepting is not None:
                self._unjudged(place, results)
            self._went(item.on_failure, results, what)
            return
        journal = self._services.journal
        text = journal.clean(f"{what} was not accepted: {ledger.reason}") if fails(asked, ledger) else None
        journal.stages(lambda stages: stages.judge(place, ledger.brief(), text))
        self._went(item.on_failure, results, what)
        if text is None:
            return
        self._fell_short = True
        self._not_accepted.append(f"stage {place + 1}: {text}")
        if item.on_failure == "stop":
            raise ChainBroken(ChainEnd(RunEvent.REJECT, "rejected", text))

    def _unjudged(self, place: int, results: Sequence[StepResult]) -> None:
        if all(result.state is StepState.COMPLETE for result in results):
            # Whoever goes on with the chain has it judged: its steps stand, the stage does not.
            self._cut_short = True
            state = StepState.STOPPED if self._registry.stopped else StepState.PAUSED
            self._services.journal.stages(
                lambda stages: stages.set(place, state, "Ended before it was judged as a whole.")
            )
        else:
            self._services.journal.stages(lambda stages: stages.follow(place))

    def _went(self, on_failure: OnFailure, results: Sequence[StepResult], what: str) -> None:
        if self._ending.is_set() or all(result.state is StepState.COMPLETE for result in results):
            return
        self._fell_short = True
        if (end := end_after(results, on_failure, what)) is not None:
            raise ChainBroken(end)

    def _results(self) -> list[StepResult]:
        results = (self._services.journal.accounts[work.step.index].result for work in self._registry.all)
        return [result for result in results if result is not None]

    def _stage_failed(self, place: int, error: str) -> None:
        self._services.journal.stages(lambda stages: stages.set(place, StepState.FAILED, error))

    def _admit_here(self, count: int) -> None:
        # What had begun before was claimed then, and all those claims at the start.
        self._admit(0 if self._before.begun(self._place, count) else count)

    def _admit(self, count: int) -> None:
        paths = self._services.writer.paths
        if not self._services.plan.is_flow or not count:
            return
        try:
            slots = admit(paths, count, path=f"{paths.root.name}/stage {self._place + 1}")
        except (RequestError, StoreError) as error:
            raise ChainBroken(ChainEnd(RunEvent.FAIL, "fan-out", str(error), "budget")) from error
        self._services.journal.stages(lambda _: None, fan_out_used=slots[-1] + 1)
