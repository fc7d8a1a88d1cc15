"""The processes of this machine, as the system shows them: whose child each is, and how to end one and no other.

Linux only: elsewhere nobody is seen, and who asks must say so.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.signals import KILL, signal_child, signal_handle, stat_of

_PROC = Path("/proc")
_END_S = 1.0
_QUIET_S = 0.01
_GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)


class Process(NamedTuple):
    """One process. With its pid, `ticks`, when it began, says who it is for as long as the machine is up."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    ticks: int

    @property
    def ended(self) -> bool:
        """Say whether it only waits to be reaped."""
        return self.state in "ZX"


def can_look() -> bool:
    """Say whether processes can be seen here, those of others too: with `hidepid`, proc(5), the first one can't be."""
    return (_PROC / "self/stat").exists() and (_PROC / "1/stat").exists()


def look(pid: int) -> Process | None:
    """Return a process, or None if it is gone or hidden.

    Raises:
        OSError: out of descriptors or memory: who can't be seen now is not gone.
    """
    try:
        fields = stat_of(pid)
    except (*_GONE, PermissionError):
        return None
    if len(fields) < 20:
        return None
    return Process(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def everyone() -> dict[int, Process]:
    """Return all processes that can be seen, the ended ones too.

    Raises:
        OSError: out of descriptors or memory.
    """
    processes = (look(int(name)) for name in os.listdir(_PROC) if name.isdigit())
    return {process.pid: process for process in processes if process is not None}


def own_children() -> set[int]:
    """Return the pids of this process's children, those that fell to it and the ended ones too.

    One may be left out while another is reaped: proc_tid_children(5). Who must have them all looks twice.

    Raises:
        OSError: out of descriptors or memory.
    """
    children: set[int] = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(*_GONE):
                children.update(map(int, _read(f"/proc/self/task/{thread}/children").split()))
        if children or Path(f"/proc/self/task/{os.getpid()}/children").exists():
            return children
    except _GONE:
        return children
    own = os.getpid()
    return {process.pid for process in everyone().values() if process.parent == own}


def mark_in(pid: int) -> str | None:
    """Return which run a process says in its environment that it is of; None if it says nothing or can't be asked.

    Raises:
        OSError: out of descriptors or memory.
    """
    try:
        data = _read(f"/proc/{pid}/environ")
    except (*_GONE, PermissionError):
        return None
    wanted = f"{RUN_MARK}=".encode()
    for variable in data.split(b"\0"):
        if variable.startswith(wanted):
            return variable.removeprefix(wanted).decode("utf-8", "replace")
    return None


def end(process: Process) -> bool:
    """End this process by force and wait a moment for it; False if it was gone, or may not be ended by us.

    The descriptor that is signalled, pidfd_open(2), was opened before it was seen to be the same process: no other is.

    Raises:
        OSError: out of descriptors or memory.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except (ProcessLookupError, PermissionError, AttributeError):
        return False
    try:
        now = look(process.pid)
        if now is None or now.ticks != process.ticks or now.ended:
            return False
        if not signal_handle(handle, KILL):
            return False
        select.select([handle], [], [], _END_S)
        return True
    finally:
        os.close(handle)


def end_orphans(fallen: Callable[[], Iterable[int]], spare: Callable[[Process], bool], *, within_s: float) -> set[int]:
    """End the children that fell to us, as fast as they come; return whom we ended.

    One that forks and exits all the time is never met by a look at all processes, for each number it finds is gone.
    Whoever it leaves behind is a child of ours at once, though, and ended here within a few of its turns.

    Raises:
        OSError: out of descriptors or memory.
    """
    ended: set[int] = set()
    passed: set[int] = set()  # they have ended, or are spared
    now = time.monotonic()
    deadline, quiet = now + within_s, now + _QUIET_S
    while now < deadline and now < quiet:
        for pid in set(fallen()) - passed:
            process = look(pid)
            if process is None or process.ended or spare(process):
                passed.add(pid)
                continue
            if signal_child(pid, KILL):
                ended.add(pid)
            quiet = time.monotonic() + _QUIET_S
        now = time.monotonic()
    return ended


def reap(pid: int) -> int | None:
    """Take an ended child of ours off the system's list; return its exit code, or None if that is not what it is."""
    with contextlib.suppress(OSError, ValueError):
        reaped, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if reaped else None
    return None


def _read(path: str) -> bytes:
    # Hundreds of these files are read at a time: no path and file objects.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)
