"""The runner: waits at its barrier, carries out the one plan of its directory, writes how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.domain.agents.models import server_variables
from subagents_nb.domain.plans.plan import LaunchPlan, choices_of, everything
from subagents_nb.domain.policy.tool_names import WAITING_TOOLS
from subagents_nb.domain.runs.postmortem import UNSTORED
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.states import RunEvent
from subagents_nb.domain.values.base import build_models
from subagents_nb.runner.chains.before import Before
from subagents_nb.runner.chains.chain_ends import ChainEnd
from subagents_nb.runner.chains.chain_run import ChainRun
from subagents_nb.runner.chains.step_registry import StepRegistry
from subagents_nb.runner.due import Due
from subagents_nb.runner.engines.choose import load
from subagents_nb.runner.journal.event_redaction import EventRedactor
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.processes.children import CHILDREN
from subagents_nb.runner.processes.stdio import forgive
from subagents_nb.runner.run_control import Control, ControlCallbacks
from subagents_nb.runner.startup import Channel, may_start
from subagents_nb.runner.steps.causes import FROM_WITHIN, Cause, signalled
from subagents_nb.runner.steps.limits_in_force import LiveLimits
from subagents_nb.runner.steps.open_questions import Questions
from subagents_nb.runner.steps.step_context import RunServices
from subagents_nb.runner.steps.step_result import ended_for
from subagents_nb.runner.tracking import KeptReads, ReadRecorder
from subagents_nb.runner.tracking.folder_accounts import FolderReads
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.runner.workspace.worktrees import Worktrees
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.lock import hold
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.processes.childlog import ChildLog
from subagents_nb.store.processes.notice import send_notice
from subagents_nb.store.processes.outliving import outlives
from subagents_nb.store.runs.left import LeftFiles
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.store.waiting.hand_on import hand_on

if TYPE_CHECKING:
    from subagents_nb.domain.plans.budgets import SharedBudget
    from subagents_nb.runner.tree.delegating import Delegating  # these are imported by a run that is in a tree
    from subagents_nb.runner.tree.place import RunSlot
    from subagents_nb.store.tree.tree_usage import SharedUsage

NOT_STARTED = 75


def warm_up() -> None:
    """Import and try what most runs need; called once in the process that will fork runners."""
    from subagents_nb.runner.engines.choose import warm_up as warm_engines

    warm_engines()


def warm_up_further() -> Iterator[None]:
    """Do the same, piece by piece, for what some runs need; called when runs can be forked already."""
    from subagents_nb.runner.engines.choose import warm_up_further as warm_engines_further

    build_models()
    yield
    yield from warm_engines_further()


def run(root: Path, *, channel: int, places: tuple[int, ...] = (), disk: Disk = DISK) -> int:
    """Carry out the plan in `root` once its launcher lets it, over the descriptor `channel`; write through `disk`.

    `places` are the descriptors that hold its place among the live runs.

    Return the exit code; the caller leaves by `os._exit`.
    """
    forgive()
    paths = RunPaths(root)
    hold(paths.lock)
    plan = read_document(paths.plan, LaunchPlan, root.name)
    if not may_start(Channel(channel), plan, paths):
        return NOT_STARTED
    home = StoreHome(root.parents[1])
    CHILDREN.keep(ChildLog(paths.children, disk=disk), spare=functools.partial(outlives, home, plan.run_id))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    runner = Runner(plan, paths, loop, disk, places)
    forgive(runner.clean)
    loop.run_until_complete(runner.carry_out())
    hand_on(home)
    return UNSTORED if runner.unstored else 0


class Runner:
    """The parts of one live run, put together."""

    def __init__(
        self,
        plan: LaunchPlan,
        paths: RunPaths,
        loop: asyncio.AbstractEventLoop,
        disk: Disk = DISK,
        places: tuple[int, ...] = (),
    ) -> None:
        self._plan = plan
        self._loop = loop
        self._disk = disk
        self._writer = RunWriter(paths, disk=disk)
        self._due = Due(paths, disk)
        self._due.say(plan.timeout_s)  # before the status says that it runs: it may be frozen from then on
        clock = WorkClock()
        first = read_document(paths.status, RunStatus, plan.run_id)
        cwd = Path(plan.cwd)
        left = LeftFiles(StoreHome(paths.root.parents[1]), cwd, plan.run_id)
        recorder = ReadRecorder(cwd, skip=_kept_by_others(plan, paths), left=left)
        # Which server answers for a model's name: the name alone is bound by the contract.
        recorder.asked.note_variables(server_variables(choices_of(plan.steps, plan.items)), os.environ)
        reads = FolderReads(recorder, cwd)
        self._journal = Journal(self._writer, plan, first, clock, reads=reads.log)
        self._limits = LiveLimits(plan, lambda: self._journal.usage)
        self._before = Before(plan, paths, disk=disk)
        self._places, self._reads = places, reads
        self._tree: SharedUsage | None = None
        self._delegating: Delegating | None = None
        self._slot: RunSlot | None = None
        self._pool: SharedUsage | None = None
        if plan.experiment.shares is not None:
            self._join_pool(plan.experiment.shares)
        if plan.origin.root is not None:
            self._join_tree()
        if any(step.delegates for step in everything(plan.steps, plan.items)):
            self._delegates()
        self._services = RunServices(
            plan=plan,
            writer=self._writer,
            disk=disk,
            journal=self._journal,
            clock=clock,
            limits=self._limits,
            questions=Questions(self._writer, plan, self._journal, self._tell, away=self._away),
            artifacts=ArtifactWriter(paths.root, disk),
            worktrees=Worktrees(paths, disk=disk, before=self._before.number),
            reads=reads,
            keep_reads=KeptReads(plan.run_id, reads.log, self._writer).keep,
            delegating=self._delegates,
            spent=self._spent,
        )

    @property
    def clean(self) -> EventRedactor:
        """Return what takes secrets out of a text."""
        return self._journal.clean

    @property
    def unstored(self) -> bool:
        """Whether the run has ended and no disk took its result."""
        return self._journal.unstored

    async def carry_out(self) -> None:
        """Do the work, under control, and write how it ended."""
        registry = StepRegistry(self._services, history=self._before.history, limited=self._before.limited)
        flow = ChainRun(self._services, registry, self._before)
        callbacks = ControlCallbacks(
            force_end=self._force, due=self._due.say, tell=self._tell, children=lambda: self._delegating
        )
        control = Control(self._writer, self._plan, self._journal, registry, flow, self._limits, callbacks)
        self._journal.start()
        work = self._loop.create_task(flow.carry_out())
        # Only noted here, and acted on by the control thread, which works while the event loop is stuck.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda sent, _: control.note(signalled(sent)))
        control.start()
        load(everything(self._plan.steps, self._plan.items))
        if any(step.mcp for step in self._plan.steps):
            with contextlib.suppress(ImportError):
                from subagents_nb.runner.mcp import http_server, step_servers  # noqa: F401
        await asyncio.wait({work})
        if self._delegating is not None:
            await self._delegating.settle()
        self._spent(now=True)
        control.close()
        self._finish(work, flow, control.cause)

    def _delegates(self) -> Delegating:
        """Return all delegation of this run, made by the first step that delegates; that may be an appended one."""
        if self._delegating is None:
            from subagents_nb.runner.tree.delegating import Delegating

            self._join_tree()
            self._delegating = Delegating(
                self._plan, self._writer.paths, self._journal, self._reads, self._place(), self._loop
            )
        return self._delegating

    def _place(self) -> RunSlot:
        """Return the place of this run, which it gives back while it only waits for runs of its tree."""
        if self._slot is None:
            from subagents_nb.runner.tree.place import RunSlot

            home, plan = StoreHome(self._writer.paths.root.parents[1]), self._plan
            self._slot = RunSlot(home, plan.run_id, self._places, plan.max_live)
        return self._slot

    def _away(self) -> AbstractAsyncContextManager[None]:
        """Give the place back while the parent is asked, which may need it, and any run that it waits for."""

        def only_waits() -> bool:
            return all(name in WAITING_TOOLS for one in self._journal.accounts.values() for name, _ in one.open_tools)

        return self._place().away(only_waits)

    def _join_tree(self) -> None:
        """Hold this run to the budget of its tree from now on."""
        if self._tree is None:
            from subagents_nb.store.tree.tree_usage import SharedUsage, of_tree

            plan = self._plan
            root = RunPaths(self._writer.paths.root.parent / (plan.origin.root or plan.run_id))
            self._tree = SharedUsage(of_tree(root), plan.run_id, disk=self._disk)
            self._limits.share(self._tree.in_tree)

    def _join_pool(self, shares: SharedBudget) -> None:
        """Hold this run to the budget of its sweep."""
        from subagents_nb.store.tree.tree_usage import SharedUsage, of_pool

        home = StoreHome(self._writer.paths.root.parents[1])
        pool = SharedUsage(of_pool(home, shares.pool), self._plan.run_id, since=shares.since, disk=self._disk)
        self._pool = pool

        def over() -> str | None:
            pool.say(self._journal.usage, at_once=True)
            return shares.over(shares.used((self._journal.usage, *pool.of_others())))

        self._limits.hold_together(over)

    def _spent(self, now: bool) -> None:
        for shared in filter(None, (self._tree, self._pool)):
            shared.say(self._journal.usage, at_once=now)

    def _tell(self, text: str) -> None:
        plan = self._plan
        notify(plan.notify_command, environ=tool_environ(os.environ), run_id=plan.run_id, name=plan.name, text=text)

    def _force(self, cause: Cause) -> None:
        """End the process although its work won't let go: write the result from the control thread and leave."""
        self._account()
        self._finish_for(cause)
        hand_on(StoreHome(self._writer.paths.root.parents[1]))
        sys.stderr.flush()
        os._exit(UNSTORED if self.unstored else 1)

    def _account(self) -> None:
        """Write down which processes were started and how they ended, if there were any; it ends now, in its time."""
        self._due.say(None)
        # Without it the proof rests on what the supervisor sees; nothing may keep the result from being written.
        with contextlib.suppress(OSError):
            CHILDREN.end_orphans()
            candidate = CHILDREN.exit_report(self._plan.run_id, self._plan.token)
            if candidate is not None:
                self._writer.exit_report(candidate)

    def _finish(self, task: asyncio.Task[ChainEnd], flow: ChainRun, cause: Cause | None) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            traceback.print_exception(error)
        self._account()
        if task.cancelled() or error is not None:
            self._finish_for(cause or FROM_WITHIN, flow)
        elif cause is not None and not self._all_done(task.result()):
            self._finish_for(cause, flow)
        else:
            end = task.result()
            self._journal.finish(
                event=end.event,
                reason=end.reason,
                actor=end.actor,
                error=end.error,
                answer=flow.bindings.answer if self._plan.is_flow else None,
                outputs=flow.bindings.outputs,
            )
            if end.event is not RunEvent.COMPLETE or self.unstored:
                self._tell("ended without a result")

    @staticmethod
    def _all_done(end: ChainEnd) -> bool:
        # The work was done before the request could end it.
        return end.event is RunEvent.COMPLETE

    def _finish_for(self, cause: Cause, flow: ChainRun | None = None) -> None:
        first = self._journal.finish(
            event=cause.event,
            reason=cause.reason,
            actor=cause.actor,
            error=cause.message,
            unfinished=lambda draft: ended_for(draft, cause),
            outputs=flow.bindings.outputs if flow is not None else None,
        )
        if first:  # the result first: a command that can't be started must not keep it
            self._tell("ended without a result")


def _kept_by_others(plan: LaunchPlan, paths: RunPaths) -> list[str]:
    """Return what lies in the workspace and is written all the time by others: the run store, and the notebook."""
    kept = [os.path.relpath(os.path.realpath(paths.root.parents[1]), os.path.realpath(plan.cwd))]
    if plan.origin.notebook is not None:
        folder, name = os.path.split(plan.origin.notebook)
        kept += [plan.origin.notebook, os.path.join(folder, f".~{name}")]  # a server saves by way of the second
    return kept


def notify(command: Sequence[str], *, environ: Mapping[str, str], run_id: str, name: str, text: str) -> None:
    """Start the command and account for it; it gets one JSON object and sees no key. A failure is only noted."""
    try:
        process = send_notice(command, run_id=run_id, name=name, text=text, environ=environ)
    except OSError as error:
        print(f"the notify command could not be run: {error}", file=sys.stderr, flush=True)  # noqa: T201
    else:
        if process is not None:
            CHILDREN.began(process.pid, what="notice", poll=process.poll)
