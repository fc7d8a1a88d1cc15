"""The runner: waits at its barrier, carries out the one plan of its directory, writes how it ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path

from subagents_nb.domain.environment import RUN_MARK, tool_environ
from subagents_nb.domain.events import StepFailed, StepOutcome
from subagents_nb.domain.plan import LaunchPlan
from subagents_nb.domain.records import RunStatus, StepResult
from subagents_nb.domain.states import RunState, StepState
from subagents_nb.runner.causes import SIGNALLED, Cause
from subagents_nb.runner.clock import WorkClock
from subagents_nb.runner.control import Control, Levers
from subagents_nb.runner.engines.base import CancelTool, Desk
from subagents_nb.runner.engines.choose import engine_for
from subagents_nb.runner.inbox import RunInbox
from subagents_nb.runner.journal import Journal
from subagents_nb.runner.limits import LiveLimits
from subagents_nb.runner.notify import notify
from subagents_nb.runner.questions import Questions
from subagents_nb.runner.startup import Channel, may_begin
from subagents_nb.runner.stdio import forgive
from subagents_nb.store.codec import lenient_json
from subagents_nb.store.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.lock import hold
from subagents_nb.store.reader import read_document
from subagents_nb.store.writer import RunWriter

NOT_STARTED = 75
_TEXT_CHARS = 200 * 1024
_VALUE_BYTES = 2 * 1024 * 1024
_STEP_STATES = {
    RunState.STOPPED: StepState.STOPPED,
    RunState.FAILED: StepState.FAILED,
    RunState.PAUSED: StepState.PAUSED,
}


def warm_up() -> None:
    """Import and try everything a run needs; called once in the process that will fork runners."""
    from subagents_nb.runner.engines.choose import warm_up as warm_engines

    warm_engines()


def run(root: Path, *, channel: int, disk: Disk = DISK) -> int:
    """Carry out the plan in `root` once its launcher lets it, over the descriptor `channel`; write through `disk`.

    Return the exit code; the caller leaves by `os._exit`.
    """
    forgive()
    paths = RunPaths(root)
    hold(paths.lock)
    plan = read_document(paths.plan, LaunchPlan, root.name)
    if not may_begin(Channel(channel), plan, paths):
        return NOT_STARTED
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    runner = Runner(plan, paths, loop, disk)
    loop.run_until_complete(runner.carry_out())
    return 0


class Runner:
    """The parts of one live run, put together."""

    def __init__(self, plan: LaunchPlan, paths: RunPaths, loop: asyncio.AbstractEventLoop, disk: Disk = DISK) -> None:
        self._plan = plan
        self._loop = loop
        self._disk = disk
        self._writer = RunWriter(paths, disk=disk)
        self._clock = WorkClock()
        first = read_document(paths.status, RunStatus, plan.run_id)
        self._journal = Journal(self._writer, plan, first, self._clock)
        self._inbox = RunInbox(self._writer, self._journal)
        step = plan.steps[0]
        self._limits = LiveLimits(
            timeout_s=plan.timeout_s, max_requests=step.max_requests, tool_timeout_s=step.tool_timeout_s
        )
        self._questions = Questions(self._writer, plan, self._journal, self._clock, self._tell)
        self._open_tools: dict[str, CancelTool] = {}
        self._task: asyncio.Task[StepOutcome] | None = None
        levers = Levers(
            cancel_work=self._cancel_work,
            cancel_tool=self._cancel_tool,
            force_end=self._force,
            tell=self._tell,
        )
        self._control = Control(self._writer, plan, self._journal, self._inbox, self._limits, levers)

    async def carry_out(self) -> None:
        """Do the work, under control, and write how it ended."""
        step = self._plan.steps[0]
        desk = self._desk()

        async def work() -> StepOutcome:
            return await engine_for(step).run(step, desk)

        self._journal.step_began(step.index)
        self._journal.begin()
        self._task = self._loop.create_task(work())
        # Only noted here, and acted on by the control thread, which works while the event loop is stuck.
        signal.signal(signal.SIGTERM, lambda *_: self._control.note(SIGNALLED))
        self._control.start()
        await asyncio.wait({self._task})
        self._control.close()
        self._finish(self._task)

    def _desk(self) -> Desk:
        plan, paths = self._plan, self._writer.paths
        step = plan.steps[0]
        source = RunPaths(paths.root.parent / plan.resumes.run_id) if plan.resumes else None
        return Desk(
            report=lambda event: self._journal.report(step.index, event),
            cwd=Path(plan.cwd),
            step_dir=paths.step(step.index),
            store_home=paths.root.parents[1],
            environ=os.environ,
            tool_environ=tool_environ(os.environ, allowed=plan.tool_env),
            history=source.step(0) / "session.json" if source else None,
            inbox=self._inbox,
            limits=self._limits,
            ask=self._questions.ask,
            waiting=self._clock.waiting,
            open_tools=self._open_tools,
        )

    def _cancel_work(self) -> None:
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _cancel_tool(self, call_id: str) -> bool:
        cancel = self._open_tools.get(call_id)
        if cancel is None:
            return False
        self._loop.call_soon_threadsafe(cancel)
        return True

    def _tell(self, text: str) -> None:
        environ = tool_environ(os.environ)
        environ.pop(RUN_MARK, None)  # it may outlive this run
        plan = self._plan
        notify(plan.notify_command, environ=environ, run_id=plan.run_id, name=plan.name, text=text)

    def _force(self, cause: Cause) -> None:
        """End the process although its work won't let go: write the result from the control thread and leave."""
        self._finish_for(self._journal.draft(0), cause)
        sys.stderr.flush()
        os._exit(1)

    def _finish(self, task: asyncio.Task[StepOutcome]) -> None:
        draft, cause = self._journal.draft(0), self._control.cause
        if task.cancelled():
            self._finish_for(draft, cause or _FROM_WITHIN)
            return
        error = task.exception()
        if error is None:
            self._finish_well(draft, task.result())
        elif cause is not None:
            self._finish_for(draft, cause)
        elif isinstance(error, StepFailed):
            ended = {"state": StepState.FAILED, "reason": error.reason, "error": error.message}
            failed = draft.model_copy(update={**ended, "usage": error.usage or draft.usage})
            self._journal.finish((failed,), state=RunState.FAILED, reason=error.reason, error=error.message)
        else:
            traceback.print_exception(error)
            text = f"A fault of the runner itself: {type(error).__name__}: {error}. Its traceback is in runner.err."
            failed = draft.model_copy(update={"state": StepState.FAILED, "reason": "internal", "error": text})
            self._journal.finish((failed,), state=RunState.FAILED, reason="internal", error=text)
        if error is not None:
            self._tell("ended without a result")

    def _finish_well(self, draft: StepResult, outcome: StepOutcome) -> None:
        size = len(lenient_json(outcome.value)) if outcome.has_value else 0
        if size > _VALUE_BYTES:
            text = f"The structured output has {size:,} bytes, more than the {_VALUE_BYTES:,} that a result can hold."
            failed = {"state": StepState.FAILED, "reason": "output-limit", "error": text, "usage": outcome.usage}
            self._journal.finish(
                (draft.model_copy(update=failed),), state=RunState.FAILED, reason="output-limit", error=text
            )
            return
        text, text_file = outcome.text, None
        if len(text) > _TEXT_CHARS:
            path = self._writer.paths.step(draft.index) / "output.txt"
            try:
                self._disk.replace(path, text.encode("utf-8", "replace"), durable=True)
                text_file = str(path.relative_to(self._writer.paths.root))
            except OSError as error:  # no room for the whole is no reason to lose the head
                print(f"the whole answer was not stored: {error}", file=sys.stderr, flush=True)  # noqa: T201
            text = text[:_TEXT_CHARS]
        done = draft.model_copy(
            update={
                "state": StepState.COMPLETE,
                "text": text,
                "text_file": text_file,
                "has_value": outcome.has_value,
                "value": outcome.value,
                "usage": outcome.usage,
                "model": outcome.model or draft.model,
            }
        )
        self._journal.finish((done,), state=RunState.COMPLETE)

    def _finish_for(self, draft: StepResult, cause: Cause) -> None:
        ended = draft.model_copy(
            update={"state": _STEP_STATES[cause.state], "reason": cause.reason, "error": cause.message}
        )
        self._journal.finish((ended,), state=cause.state, reason=cause.reason, actor=cause.actor, error=cause.message)


_FROM_WITHIN = Cause(RunState.FAILED, "internal", "self", "The work was cancelled from within.")
