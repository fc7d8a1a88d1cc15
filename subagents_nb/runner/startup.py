"""The runner's side of the start: wait at the barrier, and for a revival the longer exchange under a session lease."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from pathlib import Path

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.lock import hold_now, owner_of
from subagents_nb.store.kept.trash import SESSION_LEASE
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document

BARRIER_S = 30.0
STAGE_S = 10.0
_LINE_BYTES = 512


class Channel:
    """Lines to and from the launcher over one descriptor, a socket or, for plain launches, a pipe."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._data = b""

    def read_line(self, within_s: float) -> str | None:
        """Return the next line, or None if the launcher went away or said nothing in time."""
        deadline = time.monotonic() + within_s
        while b"\n" not in self._data:
            left = deadline - time.monotonic()
            if left <= 0 or len(self._data) > _LINE_BYTES:
                return None
            if os.name == "posix" and not select.select([self._handle], [], [], left)[0]:
                return None
            with contextlib.suppress(OSError):
                part = os.read(self._handle, _LINE_BYTES)
                if part:
                    self._data += part
                    continue
            return None
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def say(self, line: str) -> None:
        """Send one line; a launcher that is gone is noticed at the next `hear`."""
        with contextlib.suppress(OSError):
            os.write(self._handle, f"{line}\n".encode())

    def close(self) -> None:
        """Let go of the launcher."""
        with contextlib.suppress(OSError):
            os.close(self._handle)


def may_start(channel: Channel, plan: LaunchPlan, paths: RunPaths) -> bool:
    """Wait until the run's owner is on disk and it may begin; False if it must not. Says why on its error output."""
    try:
        if plan.resumes is not None and not _revive(channel, plan, paths):
            return False
        line = channel.read_line(BARRIER_S)
    finally:
        channel.close()
    if line is None:
        return _no("the launcher went away before the run could begin")
    if line != f"proceed {plan.token}":
        return _no("the launcher said something that is not this run's proceed")
    return _is_watched(paths, plan.token)


def session_lease(source: RunPaths) -> Path:
    """Return the file whose lock is the right to go on from a run's session."""
    return source.root / SESSION_LEASE


def _revive(channel: Channel, plan: LaunchPlan, paths: RunPaths) -> bool:
    """Take the lease and go through ready, ack, acknowledged, confirm, confirmed."""
    if plan.resumes is None:
        return True
    source = RunPaths(paths.root.parent / plan.resumes.run_id)
    try:
        hold_now(session_lease(source), owner=plan.run_id)  # held until this process ends
    except BlockingIOError:
        owner = owner_of(session_lease(source))
        who = f"another run, {owner}: steer that one, or stop it" if owner else "another run"
        channel.say(f"error the session is being resumed by {who}")
        return _no(f"another run holds the session's lease ({owner or 'it does not say which'})")
    except OSError as error:
        channel.say(f"error the session's lease can't be taken ({error.strerror})")
        return _no(f"the session's lease can't be taken: {error}")
    for mine, theirs in (("ready", "ack"), ("acknowledged", "confirm")):
        channel.say(f"{mine} {plan.token} {os.getpid()}")
        if channel.read_line(STAGE_S) != f"{theirs} {plan.token}":
            return _no(f"the launcher did not answer {mine} with {theirs}")
    channel.say(f"confirmed {plan.token} {os.getpid()}")
    return True


def _is_watched(paths: RunPaths, token: str) -> bool:
    """Wait until the process that started us has written down that it watches us; a cold one may still be loading."""
    deadline = time.monotonic() + BARRIER_S
    while time.monotonic() < deadline:
        with contextlib.suppress(Unreadable):
            if read_document(paths.process, ProcessRecord, paths.root.name).token == token:
                return True
        time.sleep(0.005)
    return _no("nobody wrote down that this run is watched")


def _no(why: str) -> bool:
    print(why, file=sys.stderr, flush=True)  # noqa: T201
    return False
