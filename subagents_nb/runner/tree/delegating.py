"""The tool `delegate`: another agent's run is asked for and waited for, without a place, and its answer returned."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from subagents_nb.domain.agents.agent import DELEGATE, REPLY
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.runs.control import PARENT, Retune
from subagents_nb.domain.runs.questions import Reply
from subagents_nb.domain.runs.states import QuestionEvent, StepState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.tree.asks import ChildAsk
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import Unreadable
from subagents_nb.runner.engines.engine import ChildFailed, Delegate, NotDelegated
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.steps.causes import Cause
from subagents_nb.runner.steps.limits_in_force import TimeLeft
from subagents_nb.runner.tracking.folder_accounts import FolderReads
from subagents_nb.runner.tree.child_runs import Child, asking, told
from subagents_nb.runner.tree.live_children import Children
from subagents_nb.runner.tree.place import RunSlot
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.processes.detached import bring_supervisor_up
from subagents_nb.store.runs.requests import Mailbox
from subagents_nb.store.tree.doorbell import NobodyThere, ring
from subagents_nb.store.tree.launches import OUTSIDE, outside_asks, put_ask, read_answer, read_ask

_AGAIN_S = 0.2
_BEGINS_S = 1.0
_ENDED = "the call that waited for it was ended"
_UNANSWERED = "its parent ended without an answer to it"


class _Waits:
    """The open delegations of one step. Its clock stands still while each of those waits for the person."""

    def __init__(self, clock: WorkClock) -> None:
        self.open: list[Child | None] = []  # None: not answered yet
        self.asking: dict[str, Child] = {}  # whose question the agent was told, and has not answered
        self._clock = clock
        self._still = ExitStack()
        self._stands = False

    def look(self) -> None:
        """Stop the clock, or let it go on."""
        stands = bool(self.open) and all(child is not None and child.waits for child in self.open)
        if stands and not self._stands:
            self._still.enter_context(self._clock.waiting())
        elif self._stands and not stands:
            self._still.close()
        self._stands = stands


class Delegating:
    """All delegation of one run."""

    def __init__(
        self,
        plan: LaunchPlan,
        paths: RunPaths,
        journal: Journal,
        reads: FolderReads,
        place: RunSlot,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._plan = plan
        self._paths = paths
        self._home = StoreHome(paths.root.parents[1])
        self._journal = journal
        self._reads = reads
        self._place = place
        self._numbers = itertools.count(1)
        self._ways: dict[str, int] = {}
        self._steps: dict[int, _Waits] = {}
        self._asking: set[asyncio.Task[Child]] = set()
        self._outside: dict[str, asyncio.Task[None] | None] = {}
        self._loop = loop
        self.children = Children(self._home, plan.run_id, changed=self._show)

    # --- from other threads ---

    def end(self, cause: Cause) -> None:
        """Ask the children to end, for the cause that ends this run."""
        self.children.end(cause)

    def drain(self) -> None:
        """Start nothing new, here and below."""
        self.children.drain()

    def retune(self, change: Retune) -> None:
        """Give the children the new limits of the budget."""
        self.children.retune(change)

    def take_in(self) -> None:
        """Look for what processes of this run ask for: it is asked with our variables, for they have no keys."""
        for ask_id in outside_asks(self._paths):
            if ask_id not in self._outside:
                self._outside[ask_id] = None
                self._loop.call_soon_threadsafe(self._start_outside, ask_id)

    # --- on the event loop ---

    def of_step(
        self, step: StepPlan, *, cwd: str, clock: WorkClock, times: Callable[[], Iterable[TimeLeft | None]]
    ) -> Delegate:
        """Return the tool of a step that works in `cwd`; `times` gives what is left of its deadlines."""

        return StepDelegation(self, step, cwd, clock, times)

    async def delegate(
        self, step: StepPlan, agent: str, task: str, *, cwd: str, left_s: float | None, clock: WorkClock
    ) -> str:
        """Have another agent do something, and return its answer.

        Raises:
            NotDelegated: it is not started.
            ChildFailed: it ended without an answer.
        """
        if self.children.draining or self.children.cause is not None:
            raise NotDelegated("this run is ending, so it starts nothing new")
        if asking := self._asking_of(step):
            raise NotDelegated(f"first {REPLY} to {', '.join(asking)}, which waits for your answer")
        number = next(self._numbers)
        ask = ChildAsk(
            run_id=self._plan.run_id,
            ask_id=f"d{number}",
            step=step.index,
            agent=agent,
            task=task,
            path=self._way(agent),
            cwd=cwd,
            left_s=left_s,
            asked_at=utc_now(),
        )
        async with self._waiting(step, clock) as waits:
            # In a worktree of the step it is as with what the step itself reads there.
            child = await self._begun(ask, (step.cwd or "") if step.worktree is None else None)
            waits.open[waits.open.index(None)] = child
            return await self._heard(child, waits)

    async def reply(self, step: StepPlan, child: str, text: str, *, to_person: bool, clock: WorkClock) -> str:
        """Answer the question of a child, or pass it on to the person, and wait for it as `delegate` does.

        Raises:
            NotDelegated: no such child waits for an answer.
            ChildFailed: it ended without an answer.
        """
        asking = self._asking_of(step)
        asker = asking.get(child.rpartition("/")[2])
        if asker is None:
            waiting = f"; these do: {', '.join(asking)}" if asking else ""
            raise NotDelegated(f"no {one_line(child, 80) or 'child'} waits for an answer of yours{waiting}")
        if not to_person and not text.strip():
            raise NotDelegated("the answer is empty")
        async with self._waiting(step, clock) as waits:
            del waits.asking[asker.path]
            waits.open[waits.open.index(None)] = asker
            await in_thread(lambda: self._answer(asker, text, passed=to_person))
            if self._only_waits():  # whoever was answered needs a place, and says nothing before it has one
                self._place.leave()
            return await self._heard(asker, waits)

    async def close(self, step: StepPlan) -> None:
        """Stop those of a step's children whose questions its agent has left open."""
        waits = self._steps.get(step.index)
        if waits is None or not waits.asking:
            return
        self.children.ask("stop", _UNANSWERED, list(waits.asking.values()))
        waits.asking.clear()

    def _asking_of(self, step: StepPlan) -> dict[str, Child]:
        """Return whose questions the agent of a step was told and has not answered, by their names."""
        waits = self._steps.get(step.index)
        return {path.rpartition("/")[2]: child for path, child in waits.asking.items()} if waits is not None else {}

    async def _heard(self, child: Child, waits: _Waits) -> str:
        """Wait for a child; return its answer, or what it asks."""
        try:
            question = await child.speaks()
        except asyncio.CancelledError:
            if self.children.cause is None:
                self.children.ask("stop", _ENDED, [child])
            raise
        finally:
            waits.open[waits.open.index(child)] = None
        if question is not None:
            child.told = question.question_id
            waits.asking[child.path] = child
            return asking(child, question)
        self._take_reads(child)
        text, ok = await in_thread(lambda: told(child, self._home.run(child.run_id)))
        if not ok:
            raise ChildFailed(text)
        return text

    def _answer(self, child: Child, text: str, *, passed: bool) -> None:
        """Answer the question that was told last; where somebody was first, theirs counts."""
        said = {"run_id": child.run_id, "question_id": child.told, "text": text, "passed": passed}
        reply = Reply.after(QuestionEvent.ANSWER, **said, answered_at=utc_now(), answered_by=PARENT)
        with contextlib.suppress(OSError):  # it is gone, and so has ended
            Mailbox(self._home.run(child.run_id)).reply(reply)

    @asynccontextmanager
    async def _waiting(self, step: StepPlan, clock: WorkClock) -> AsyncIterator[_Waits]:
        """Count one more that a step waits for. When it waits for none any more, its run has a place again."""
        waits = self._steps.setdefault(step.index, _Waits(clock))
        waits.open.append(None)
        try:
            yield waits
        finally:
            waits.open.remove(None)
            waits.look()
        if not waits.open:
            with clock.waiting():
                await self._place.take()

    async def settle(self) -> None:
        """Wait for the ends of all children, those that are being asked for included."""
        if self._asking:
            await asyncio.wait(self._asking, timeout=_BEGINS_S)
        await self.children.settle()
        for child in self.children.all:  # nobody waited for the end of some
            self._take_reads(child)

    async def _begun(self, ask: ChildAsk, folder: str | None) -> Child:
        """Return the child of an ask. If whoever waits is cancelled, the child that comes all the same is stopped."""

        async def begin() -> Child:
            child = Child(await self._asked(ask), ask.ask_id, ask.path, ask.agent, ask.asked_at, folder=folder)
            self.children.add(child)
            return child

        task = asyncio.get_running_loop().create_task(begin())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, task: asyncio.Task[Child]) -> None:
        if not task.cancelled() and task.exception() is None:
            self.children.ask("stop", _ENDED, [task.result()])

    def _start_outside(self, ask_id: str) -> None:
        self._outside[ask_id] = self._loop.create_task(self._child_outside(ask_id))

    async def _child_outside(self, ask_id: str) -> None:
        """Have the child begin that a process of this run asks for, and take in what it read when it has ended."""
        with contextlib.suppress(Unreadable, NotDelegated):  # the answer says it
            ask = read_ask(self._paths, ask_id)
            child = await self._begun(ask, os.path.relpath(ask.cwd, self._plan.cwd))
            while (question := await child.speaks()) is not None:  # no agent waits for it, so none can answer
                child.told = question.question_id
                await in_thread(lambda: self._answer(child, "", passed=True))
            self._take_reads(child)
            if not any(waits.open for waits in self._steps.values()):
                await self._place.take()

    async def _asked(self, ask: ChildAsk) -> str:
        """Return the id of the child. An ask stays until it is answered, whichever supervisor ends meanwhile."""
        if not ask.ask_id.startswith(OUTSIDE):
            await in_thread(lambda: put_ask(self._paths, ask))
        while True:
            failed = ""
            try:
                said = await in_thread(lambda: ring(self._home, self._plan.run_id, ask.ask_id, os.environ))
                failed = "" if said.get("ok") else str(said.get("error"))
            except NobodyThere:
                await in_thread(lambda: bring_supervisor_up(self._home, now=True))
            answer = read_answer(self._paths, ask.ask_id)
            if answer is not None and answer.child is not None:
                return answer.child
            if answer is not None or failed:
                raise NotDelegated(answer.refused if answer else f"no run could be started: {one_line(failed, 300)}")
            await asyncio.sleep(_AGAIN_S)

    def _show(self, rows: tuple[TreeRow, ...]) -> None:
        """Take in how the children stand: what is shown, whether the clock goes, whether the place is needed."""
        self._journal.status.tree(rows)
        for waits in self._steps.values():
            waits.look()
        # A process of ours that has a child may wait for it: nobody can tell.
        if self._only_waits() or any(task is not None and not task.done() for task in self._outside.values()):
            self._place.leave()

    def _only_waits(self) -> bool:
        """Say whether all that is at work in this run waits for its children."""
        at_work = [one for one in self._journal.accounts.values() if one.status.state is StepState.RUNNING]
        return bool(at_work) and all(
            (waits := self._steps.get(one.status.index)) is not None
            and waits.open
            and None not in waits.open
            and all(name in (DELEGATE, REPLY) for name, _ in one.open_tools)
            for one in at_work
        )

    def _take_reads(self, child: Child) -> None:
        """Take in what a child read, once: where that is as it was, this run would be told the same."""
        if child.folder is None or child.accounted:
            return
        child.accounted = True
        result = child.snapshot.result if child.snapshot is not None else None
        self._reads.take(child.folder, None if result is None else result.reads, who=child.path)

    def _way(self, agent: str) -> str:
        """Return the way from the root to a new child."""
        self._ways[agent] = count = self._ways.get(agent, 0) + 1
        own = agent if count == 1 else f"{agent}-{count}"
        above = self._plan.origin.path
        return f"{above}/{own}" if above else own


@dataclass(frozen=True, slots=True)
class StepDelegation:
    """The delegation of one step, which works in `cwd`; `times` gives what is left of its deadlines."""

    delegating: Delegating
    step: StepPlan
    cwd: str
    clock: WorkClock
    times: Callable[[], Iterable[TimeLeft | None]]

    async def __call__(self, agent: str, task: str) -> str:
        """Have another agent do something, and return its answer, or what it asks first."""
        left = min((one.left_s for one in self.times() if one is not None), default=None)
        return await self.delegating.delegate(self.step, agent, task, cwd=self.cwd, left_s=left, clock=self.clock)

    async def reply(self, child: str, text: str, *, to_person: bool = False) -> str:
        """Answer a child, or have the person do so."""
        return await self.delegating.reply(self.step, child, text, to_person=to_person, clock=self.clock)

    async def close(self) -> None:
        """End the children that nobody will answer any more."""
        await self.delegating.close(self.step)
