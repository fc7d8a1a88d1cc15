"""One step at work: its turn, its deadline, its end. A step is ended by itself; its run goes on."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from subagents_nb.domain.plans.acceptance import Judgement
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.plans.resumed import with_earlier_session
from subagents_nb.domain.runs.events import Noticed, StepFailed, StepOutcome
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunEvent, StepEvent, StepState
from subagents_nb.domain.values.usage import Usage
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.choose import engine_for
from subagents_nb.runner.engines.engine import CancelTool, Sandboxed, StepContext
from subagents_nb.runner.engines.session_file import start_session
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.accepting import Accepting
from subagents_nb.runner.steps.causes import FROM_WITHIN, Cause, past_deadline
from subagents_nb.runner.steps.inbox import RunInbox
from subagents_nb.runner.steps.input_paths import inputs_prompt
from subagents_nb.runner.steps.limits_in_force import StepLimits, TimeLeft
from subagents_nb.runner.steps.reviewing import review
from subagents_nb.runner.steps.sandboxing import sandbox_of_step
from subagents_nb.runner.steps.serving import served
from subagents_nb.runner.steps.step_context import OwnParts, RunServices, context_of
from subagents_nb.runner.steps.step_result import ended_for, ended_well, ended_with
from subagents_nb.runner.workspace.own_folder import folder_of, from_folder
from subagents_nb.runner.workspace.step_files import OutputFile

_CHECKPOINT = (
    "The deadline is {left} away. Leave what you have found so far as your final answer now, and say what is missing."
)
LET_GO_S = 3.0  # how long an ended step may take to let go before the run goes on without it


class StepWork:
    """One step, from its plan to its result."""

    def __init__(self, step: StepPlan, services: RunServices, *, history: Path | None = None) -> None:
        self.step = step
        self.inbox = RunInbox(services.writer, services.journal)
        self.cause: Cause | None = None
        # With everything put in: of a chain's step it is known once it has begun. A run of one step may be ended by
        # force while it still imports.
        self._task: Callable[[], str] | None = None
        if not services.plan.is_flow:
            self._task = lambda: with_earlier_session(step.session, step.task)
        self._services = services
        self._limits = StepLimits(services.limits, step)
        self._history = history
        self._open_tools: dict[str, CancelTool] = {}
        self._guard = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._clock: WorkClock | None = None
        self._began = self._ended = self._reminded = False
        self._at_rest = True
        self._output: OutputFile | None = None

    @property
    def at_work(self) -> bool:
        """Whether it has begun and not ended."""
        return self._began and not self._ended

    def end(self, cause: Cause) -> bool:
        """End the step for this cause, now or when its turn comes; False if it has ended or is being ended already."""
        with self._guard:
            if self.cause is not None or self._ended:
                return False
            self.cause = cause
        self._loop.call_soon_threadsafe(self._ending.set)
        self._keep_task()
        return True

    def overdue(self) -> Cause | None:
        """Return the cause of its end if it is past its own deadline."""
        left = self._left
        if left is None or left.left_s > 0 or self._ended:
            return None
        return past_deadline(left.of_s, self._services.journal.accounts[self.step.index].status.activity, step=True)

    def remind(self, run: TimeLeft | None) -> None:
        """Ask once for what there is when its own deadline, or the run's, is near; never in the first half."""
        checkpoint_s = self.step.checkpoint_s or self._services.plan.checkpoint_s
        if checkpoint_s is None:
            return
        near = [
            one.left_s for one in (self._left, run) if one is not None and one.left_s <= min(checkpoint_s, one.of_s / 2)
        ]
        if near and not self._reminded:
            self._reminded = True
            self.inbox.remind(_CHECKPOINT.format(left=duration(max(1, round(min(near))))))

    def remind_anew(self) -> None:
        """Forget that it was reminded: its deadline is another one now."""
        self._reminded = False

    @property
    def waits(self) -> bool:
        """Whether it waits for the person or for a rate limit."""
        clock = self._clock
        return clock is not None and not self._ended and clock.is_waiting

    @property
    def _left(self) -> TimeLeft | None:
        return None if self._clock is None else self._limits.time_left(self._clock.worked_s)

    def cancel_tool(self, call_id: str) -> bool:
        """End one open tool call."""
        cancel = self._open_tools.get(call_id)
        if cancel is None:
            return False
        self._loop.call_soon_threadsafe(cancel)
        return True

    def stand(self) -> None:
        """Take in that another run did the work: there is nothing left to end or to steer."""
        with self._guard:
            self._began = self._ended = True
        self.inbox.close()

    async def carry_out(self, task: Callable[[str], str], *, said: str | None = None) -> StepResult:
        """Do the work and return what came of it; a step that goes wrong is a result too.

        `task` gives the task for the directory that the step works in, which a worktree has only once it is made.
        `said` is what a step is told that goes on from its session: its task stands in there already.
        """
        journal, index = self._services.journal, self.step.index
        self._began = True
        with self._guard:
            self._task = lambda: (
                with_earlier_session(self.step.session, task(self._services.plan.cwd)) if said is None else said
            )
        if self.cause is not None:
            self._keep_task()
            return self._done(ended_for(journal.draft(index), self.cause))
        journal.step_began(index)
        with self._services.clock.part() as clock:
            self._clock = clock
            result = await self._guarded(self._work(task, said, clock))
            if self.step.worktree is not None:
                record = await self._services.worktrees.capture(self.step, at_rest=self._at_rest)
                result = result.model_copy(update={"worktree": record})
        return self._done(result)

    async def _guarded(self, work: Awaitable[StepResult]) -> StepResult:
        journal, index = self._services.journal, self.step.index
        task = asyncio.ensure_future(work)
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({task, ending}, return_when=asyncio.FIRST_COMPLETED)
            if self.cause is not None and not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=LET_GO_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            ending.cancel()
        with self._guard:
            self._ended = True
        self.inbox.close()
        if not task.done():
            self._at_rest = False
            print(f"steps[{index}] did not let go; the run goes on without it", file=sys.stderr, flush=True)  # noqa: T201
            return ended_for(journal.draft(index), self.cause or FROM_WITHIN)
        if task.cancelled():
            return ended_for(journal.draft(index), self.cause or FROM_WITHIN)
        error = task.exception()
        if error is None:
            return task.result()
        return ended_for(journal.draft(index), self.cause) if self.cause else ended_with(journal.draft(index), error)

    async def _work(self, task: Callable[[str], str], said: str | None, clock: WorkClock) -> StepResult:
        step, services = self.step, self._services
        root = Path(services.plan.cwd)
        if step.worktree is not None:
            root = await services.worktrees.prepare(step, label=step.title)
        cwd = folder_of(step, root)
        filled = task(str(root))
        told = with_earlier_session(self.step.session, filled) if said is None else said
        self._task = lambda: told
        async with sandbox_of_step(step, cwd, services.writer.paths, services.plan) as sandbox:
            context = self._context(root, cwd, clock, sandbox)
            try:
                return await self._converse(filled, said, context)
            finally:
                for notice in sandbox.notices() if sandbox is not None else ():
                    context.report(notice)

    async def _converse(self, task: str, said: str | None, context: StepContext) -> StepResult:
        step, journal, cwd = self.step, self._services.journal, context.cwd
        earlier = None if self._history is None else self._history.parent
        self._output = output = OutputFile(
            step, cwd, own=context.files, report=context.report, step_dir=context.step_dir, earlier=earlier
        )
        self._declare(context)
        asked = task if said is None else f"{task}\n\n{said}"
        accepting = Accepting(step.model_copy(update={"task": asked}), context)
        await accepting.note_staged()
        told = with_earlier_session(self.step.session, task) if said is None else said
        parts = (told, inputs_prompt(context), output.instructions(), accepting.instructions())
        whole = "\n\n".join(part for part in parts if part)
        async with served(step, context, self._services.artifacts) as around:
            outcome: StepOutcome = await engine_for(step).run(step.model_copy(update={"task": whole}), around)
        outcome = journal.clean.outcome(outcome)
        outcome = accepting.take_report(outcome)
        result = ended_well(journal.draft(step.index), outcome, self._keep_text, step.max_output)
        given = len(result.text)
        if result.state is not StepState.COMPLETE:
            return result
        async with context.reads.watch.during(step.acceptance is not None and bool(step.acceptance.verify)):
            ledger = await accepting.judge(
                result,
                changed_files=tuple(from_folder(path, step.cwd) for path in journal.accounts[step.index].changed_files),
                changed_meanwhile=tuple(
                    from_folder(path, step.cwd) for path in journal.accounts[step.index].changed_meanwhile
                ),
                run_dir=self._services.writer.paths.root,
                review=lambda about: self._review(about, context, result.usage),
            )
        if ledger is not None and ledger.review_usage is not None:
            result = result.model_copy(update={"usage": result.usage.plus(ledger.review_usage)})
        saved, text = output.keep(result.text, whole=outcome.text if result.text_file else None)
        result = result.model_copy(update={"text": text, "saved": saved, "acceptance": ledger})
        if saved is not None and saved.error is None:
            if saved.place == "workspace" and step.output is not None:
                context.reads.keep(step.output.path)
            if step.max_output is None:
                result = result.model_copy(update={"text_file": None})  # the whole is in the output file
        if result.text_file is not None and self._services.plan.is_flow:
            said = f"Its answer has {len(outcome.text):,} characters; later steps are given the first {given:,}."
            context.report(Noticed("answer-cut", said))
        if ledger is not None and ledger.rejected and ledger.explicit and not _only_reported(step):
            why = f"The step was not accepted: {ledger.reason}"
            return result.to(StepEvent.REJECT, reason="rejected", error=why)
        return result

    async def _review(self, task: str, context: StepContext, so_far: Usage) -> Judgement:
        reviewer = self.step.reviewer
        if reviewer is None:
            return Judgement(agent="reviewer", accepted=None, reasons=("the plan names no reviewer",))
        said = await review(reviewer, task, context, StepLimits(self._services.limits, reviewer), so_far=so_far)
        return said.model_copy(update={"reasons": tuple(map(self._services.journal.clean.preview, said.reasons))})

    def _context(self, root: Path, cwd: Path, clock: WorkClock, sandbox: Sandboxed | None) -> StepContext:
        own = OwnParts(
            inbox=self.inbox,
            limits=self._limits,
            open_tools=self._open_tools,
            history=self._history,
            output=lambda: self._output,
            left=lambda: self._left,
        )
        return context_of(self.step, self._services, own, root=root, cwd=cwd, clock=clock, sandbox=sandbox)

    def _declare(self, context: StepContext) -> None:
        """Say which files are the step's own, and which it was to read but were not there."""
        step = self.step
        if step.output is not None and step.output.explicit:
            context.reads.own(step.output.path)
        for name in step.reads:
            if not (context.cwd / name).is_file():
                with context.reads.reading(name):
                    pass

    def _keep_text(self, text: str) -> Path:
        path = self._services.writer.paths.step(self.step.index) / "output.txt"
        self._services.disk.replace(path, text.encode("utf-8", "replace"), durable=True)
        return path.relative_to(self._services.writer.paths.root)

    def _keep_task(self) -> None:
        """Make the task the session of a step that is paused before its engine has saved one: it was promised."""
        if self._task is None or self.cause is None or self.cause.event is not RunEvent.PAUSE:
            return
        try:
            start_session(self._services.writer.paths.step(self.step.index), self._task(), history=self._history)
        except (OSError, ValueError, StepFailed) as error:
            print(f"steps[{self.step.index}] was paused without a session: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _done(self, result: StepResult) -> StepResult:
        with self._guard:
            self._ended = True
        self.inbox.close()
        kept = (self._services.writer.paths.step(self.step.index) / "session.json").is_file()
        ended = result.model_copy(update={"session": kept})
        self._services.journal.step_ended(ended)
        return ended


def _only_reported(step: StepPlan) -> bool:
    return step.acceptance is not None and step.acceptance.contract and step.acceptance.gate_on == "execution"
