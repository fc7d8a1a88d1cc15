"""The launcher's side of a start: proceed, or for a revival the longer exchange before it; and ending what failed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import Verdict, signal_name
from subagents_nb.domain.runs.states import RunEvent, RunState
from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.signals import signal_handle
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.supervisor.processes.identity import start_ticks, ticks_if_seen

STAGE_S = 10.0
_RECORDED_S = 1.0  # within which whoever watches a runner that has ended writes that down
_POLITE_S = _FORCED_S = 1.0


class RunnerSilent(LaunchError):
    """A runner is there and says nothing: whoever waits for its word ends it, and that is no doing of the machine."""


def stage(heard: bytes, wanted: str, token: str) -> None:
    """Check that the runner said what it must say now.

    Raises:
        LaunchError: it said something else.
    """
    words = heard.decode("utf-8", "replace").split(" ", 1)
    if words[0] == "error":
        raise LaunchError(
            f"The run can't go on from this session: {words[1] if len(words) > 1 else 'no reason given'}."
        )
    if words[0] != wanted or not (len(words) > 1 and words[1].startswith(token)):
        raise LaunchError(f"The run's process said {words[0]!r} where it had to say {wanted!r}.")


def gone(paths: RunPaths, token: str, wanted: str) -> LaunchError:
    """Return what to say of a runner that ended instead of getting `wanted`: with how, once its watcher wrote it down.

    The watcher's own word on the run says as much, and more.
    """
    deadline, how = time.monotonic() + _RECORDED_S, "went away"
    while time.monotonic() < deadline:
        with contextlib.suppress(Unreadable):
            record = read_document(paths.process, ProcessRecord, paths.root.name)
            if record.token == token and record.state != "pending":
                how = "ended" if record.exit_code is None else f"exited with code {record.exit_code}"
                how = how if record.signal is None else f"was ended by {signal_name(record.signal)}"
                break
        time.sleep(0.01)
    return LaunchError(f"The run's process {how} before it was {wanted}.")


def own_up(paths: RunPaths, error: BaseException) -> None:
    """Say in the run itself that its launcher ends its process, and why, before it does: the watcher can only guess."""
    message = f"{error} It never began, and its launcher ended it." if isinstance(error, LaunchError) else ""
    verdict = Verdict.over(
        RunState.QUEUED,
        RunEvent.FAIL,
        run_id=paths.root.name,
        reason="startup",
        actor="self",
        message=message or "Its launcher gave up before it began, and ended its process.",
        judged_at=utc_now(),
        judged_by="launcher",
    )
    with contextlib.suppress(OSError):
        RunWriter(paths).verdict(verdict)


def is_of_launch(paths: RunPaths, pid: int, token: str) -> bool:
    """Say whether a run's process record, where there is one, names this process as started under this token."""
    try:
        record = read_document(paths.process, ProcessRecord, paths.root.name)
    except Unreadable as error:
        return error.kind == "missing"  # whoever started it has not come to writing yet, or never will
    return (record.pid, record.token) == (pid, token)


def end_process(pid: int, ticks: int | None, *, proved: Callable[[], bool] = lambda: True) -> bool:
    """End a runner that did not get to work: TERM, after a second KILL. Say whether its end was observed.

    It is signalled through a descriptor that was opened before its start time was checked, and what else proves that it
    is the one that is meant; a stranger never is.
    """
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return _is_gone(pid, ticks)
    try:
        if _is_gone(pid, ticks):
            return True
        if ticks is None or ticks_if_seen(pid) != ticks or not proved():
            return False  # who has this number can't be seen, or is not proved to be meant
        for number, patience in ((signal.SIGTERM, _POLITE_S), (signal.SIGKILL, _FORCED_S)):
            signal_handle(handle, number)
            if select.select([handle], [], [], patience)[0]:
                return True
        return False
    finally:
        os.close(handle)


def await_death(pid: int, ticks: int | None, within_s: float) -> bool:
    """Wait until a process is gone; False if it is still there after `within_s`."""
    deadline = time.monotonic() + within_s
    while not _is_gone(pid, ticks):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _is_gone(pid: int, ticks: int | None) -> bool:
    try:
        now = start_ticks(pid)
    except PermissionError:
        return False  # another's by now, or hidden: that is no proof of anything
    return now is None or (ticks is not None and now != ticks)
