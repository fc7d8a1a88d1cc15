"""The launcher's side of a start: proceed, or for a revival the longer exchange before it; and ending what failed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from subagents_nb.domain.records import ProcessRecord
from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.reader import read_document
from subagents_nb.supervisor.identity import start_ticks

STAGE_S = 10.0
_POLITE_S = _FORCED_S = 1.0


def stage(heard: bytes | None, wanted: str, token: str) -> None:
    """Check that the runner said what it must say now.

    Raises:
        LaunchError: it went away, was silent for too long, or said something else.
    """
    if heard is None:
        raise LaunchError(f"The run's process ended or was silent before it was {wanted}.")
    words = heard.decode("utf-8", "replace").split(" ", 1)
    if words[0] == "error":
        raise LaunchError(
            f"The run can't go on from this session: {words[1] if len(words) > 1 else 'no reason given'}."
        )
    if words[0] != wanted or not (len(words) > 1 and words[1].startswith(token)):
        raise LaunchError(f"The run's process said {words[0]!r} where it had to say {wanted!r}.")


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
        if not proved():
            return False
        for number, patience in ((signal.SIGTERM, _POLITE_S), (signal.SIGKILL, _FORCED_S)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
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
        return True  # ours could be looked at: this is somebody else's
    return now is None or (ticks is not None and now != ticks)
