"""Processes that a run started and left behind: its process group, and whatever carries its mark in the environment."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.environment import RUN_MARK
from subagents_nb.supervisor.identity import is_zombie, process_group, start_ticks


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Whom we ended, and whether nobody of the run is left; None where that can't be seen."""

    ended: tuple[int, ...] = ()
    empty: bool | None = None


def mark_of(run_id: str, token: str) -> str:
    """Return the value of the variable that every process of a run inherits."""
    return f"{run_id}:{token}"


def end_leftovers(group: int | None, mark: str, *, since: int | None = None) -> Leftovers:
    """End every process of a run whose runner, the leader of `group`, has ended but is not yet reaped.

    While the leader is unreaped its pid, and so the group's number, can't belong to anybody else. A process with the
    mark is signalled through a descriptor that was opened before the mark was checked. Without a group, as for a leader
    that was not ours to reap, only the mark counts. Who began before `since`, in start ticks, is passed over.
    """
    if not Path("/proc/self/environ").exists():
        return Leftovers()
    ended: set[int] = set()
    for _ in range(3):  # a process may have been forking while we looked
        found = _find(group, mark, since)
        if not found:
            return Leftovers(tuple(sorted(ended)), empty=True)
        for pid in found:
            if _kill_verified(pid, group, mark):
                ended.add(pid)
    return Leftovers(tuple(sorted(ended)), empty=not _find(group, mark, since))


def _find(group: int | None, mark: str, since: int | None) -> list[int]:
    own = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    others = [pid for pid in pids if pid not in (own, group) and pid > 1 and _began_after(pid, since)]
    return [pid for pid in others if _belongs(pid, group, mark)]


def _began_after(pid: int, since: int | None) -> bool:
    """Whoever began before the run did can't belong to it; to read its environment would be the costly part."""
    if since is None:
        return True
    with contextlib.suppress(PermissionError):
        ticks = start_ticks(pid)
        return ticks is not None and ticks >= since
    return False


def _belongs(pid: int, group: int | None, mark: str) -> bool:
    try:
        if is_zombie(pid):
            return False
        if group is not None and process_group(pid) == group:
            return True
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{RUN_MARK}={mark}".encode() in data.split(b"\0")


def _kill_verified(pid: int, group: int | None, mark: str) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        if not _belongs(pid, group, mark):
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        _await_end(handle)
        return True
    finally:
        os.close(handle)


def _await_end(handle: int) -> None:
    import select

    select.select([handle], [], [], 1.0)
