"""Who a process is: host, boot, pid namespace, pid and start ticks. On Linux ticks come from no wall clock, which is
set at times: giampaolo/psutil#2526.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from pathlib import Path

import psutil

from subagents_nb.domain.runs.records import Identity
from subagents_nb.signals import exists, stat_of
from subagents_nb.store.clock import boot_id


@functools.cache
def host_id() -> str | None:
    """Return a stable name for this machine or container, hashed, as machine-id(5) wants it: it names none."""
    import hashlib

    for source in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(source).read_text().strip()
        except OSError:
            continue
        if text:
            return hashlib.sha256(b"subagents-nb:" + text.encode()).hexdigest()[:16]
    node = platform.node()
    return hashlib.sha256(b"subagents-nb:" + node.encode()).hexdigest()[:16] if node else None


@functools.cache
def pid_namespace() -> str | None:
    """Return the name of our pid namespace, or None where there is no such thing."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """Return when a process started: clock ticks since boot on Linux, hundredths of a second elsewhere; None if gone.

    Raises:
        PermissionError: looking is not permitted, or there is no /proc. Nobody is gone for that.
    """
    fields = _stat(pid)
    if fields is not None:
        return int(fields[19])
    if sys.platform == "linux":
        if exists(pid):
            raise PermissionError(f"process {pid} can't be looked at")
        return None
    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied as error:
        raise PermissionError(f"process {pid} can't be looked at") from error


def is_zombie(pid: int) -> bool:
    """Say whether a process has ended and only waits to be reaped."""
    fields = _stat(pid)
    if fields is not None:
        return fields[0] in ("Z", "X")
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def ticks_if_seen(pid: int) -> int | None:
    """Return when a process started; None also where it can't be looked at."""
    with contextlib.suppress(PermissionError):
        return start_ticks(pid)
    return None


def identify(pid: int, token: str, *, ticks: int | None = None) -> Identity:
    """Return the identity of a living process, to be written down; `ticks` if they were read already."""
    return Identity(
        pid=pid,
        start_ticks=ticks if ticks is not None else ticks_if_seen(pid),
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        host=host_id(),
        token=token,
    )


def _stat(pid: int) -> list[str] | None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return stat_of(pid)
    return None
