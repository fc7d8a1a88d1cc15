"""The runner: waits at its barrier, carries out the one plan of its directory, writes how it ended."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import BinaryIO, cast

from subagents_nb.domain.environment import tool_environ
from subagents_nb.domain.events import StepFailed, StepOutcome
from subagents_nb.domain.plan import LaunchPlan
from subagents_nb.domain.records import RunStatus, StepResult
from subagents_nb.domain.states import RunState, StepState
from subagents_nb.runner.control import SIGNALLED, Cause, Control
from subagents_nb.runner.engines.base import Desk
from subagents_nb.runner.engines.choose import engine_for
from subagents_nb.runner.journal import Journal
from subagents_nb.store.disk import DISK
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.lock import hold
from subagents_nb.store.reader import read_document
from subagents_nb.store.writer import RunWriter

BARRIER_S = 30.0
NOT_STARTED = 75
_TEXT_CHARS = 200 * 1024
_STEP_STATES = {RunState.STOPPED: StepState.STOPPED, RunState.FAILED: StepState.FAILED}


def warm_up() -> None:
    """Import and try everything a run needs; called once in the process that will fork runners."""
    from subagents_nb.runner.engines.choose import warm_up as warm_engines

    warm_engines()


def run(root: Path, *, barrier: BinaryIO) -> int:
    """Carry out the plan in `root` once the barrier opens. Return the exit code; the caller leaves by `os._exit`."""
    paths = RunPaths(root)
    run_id = root.name
    hold(paths.lock)
    plan = read_document(paths.plan, LaunchPlan, run_id)
    if not _may_proceed(barrier, plan.token):
        return NOT_STARTED
    writer = RunWriter(paths)
    journal = Journal(writer, plan, read_document(paths.status, RunStatus, run_id))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_carry_out(loop, plan, writer, journal))
    return 0


def _may_proceed(barrier: BinaryIO, token: str) -> bool:
    """Wait until the launcher has written down who owns this run; False if it went away or named another run."""
    if os.name == "posix" and not select.select([barrier], [], [], BARRIER_S)[0]:
        print("nobody opened the barrier", file=sys.stderr)  # noqa: T201
        return False
    word, _, said = barrier.readline(512).decode("utf-8", "replace").strip().partition(" ")
    barrier.close()
    if word != "proceed" or said != token:
        print("the launcher went away before the run could begin", file=sys.stderr)  # noqa: T201
        return False
    return True


async def _carry_out(loop: asyncio.AbstractEventLoop, plan: LaunchPlan, writer: RunWriter, journal: Journal) -> None:
    step = plan.steps[0]
    desk = Desk(
        report=journal.report,
        cwd=Path(plan.cwd),
        step_dir=writer.paths.step(step.index),
        store_home=writer.paths.root.parents[1],
        environ=os.environ,
        tool_environ=tool_environ(os.environ, allowed=plan.tool_env),
    )

    async def work() -> StepOutcome:
        return await engine_for(step).run(step, desk)

    task = loop.create_task(work())
    control = Control(
        writer,
        journal,
        timeout_s=plan.timeout_s,
        cancel=lambda: cast(None, loop.call_soon_threadsafe(task.cancel)),
        force=lambda cause: _force(journal, cause),
    )
    if os.name == "posix":
        loop.add_signal_handler(signal.SIGTERM, lambda: control.end(SIGNALLED))
    journal.begin()
    control.start()
    await asyncio.wait({task})
    control.close()
    _finish(journal, writer, task, control.cause)


def _finish(journal: Journal, writer: RunWriter, task: asyncio.Task[StepOutcome], cause: Cause | None) -> None:
    draft = journal.draft()
    if task.cancelled():
        cause = cause or Cause(RunState.FAILED, "internal", "self", "The work was cancelled from within.")
        _finish_for(journal, draft, cause)
        return
    error = task.exception()
    if error is None:
        _finish_well(journal, writer, draft, task.result())
    elif cause is not None:
        _finish_for(journal, draft, cause)
    elif isinstance(error, StepFailed):
        usage = error.usage or draft.usage
        failed = draft.model_copy(
            update={"state": StepState.FAILED, "reason": error.reason, "error": error.message, "usage": usage}
        )
        journal.finish(failed, state=RunState.FAILED, reason=error.reason, error=error.message)
    else:
        traceback.print_exception(error)
        text = f"A fault of the runner itself: {type(error).__name__}: {error}. Its traceback is in runner.err."
        failed = draft.model_copy(update={"state": StepState.FAILED, "reason": "internal", "error": text})
        journal.finish(failed, state=RunState.FAILED, reason="internal", error=text)


def _finish_well(journal: Journal, writer: RunWriter, draft: StepResult, outcome: StepOutcome) -> None:
    text, text_file = outcome.text, None
    if len(text) > _TEXT_CHARS:
        path = writer.paths.step(draft.index) / "output.txt"
        DISK.replace(path, text.encode("utf-8", "replace"), durable=True)
        text, text_file = text[:_TEXT_CHARS], str(path.relative_to(writer.paths.root))
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
    journal.finish(done, state=RunState.COMPLETE)


def _finish_for(journal: Journal, draft: StepResult, cause: Cause) -> None:
    ended = draft.model_copy(
        update={"state": _STEP_STATES[cause.state], "reason": cause.reason, "error": cause.message}
    )
    journal.finish(ended, state=cause.state, reason=cause.reason, actor=cause.actor, error=cause.message)


def _force(journal: Journal, cause: Cause) -> None:
    """End the process although its work won't let go: write the result from the control thread and leave."""
    _finish_for(journal, journal.draft(), cause)
    sys.stderr.flush()
    os._exit(1)
