"""Proof of life: a runner holds an exclusive lock on a file of its run; the system takes it away when it ends."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Literal

from subagents_nb.domain.ids import is_run_id
from subagents_nb.store.disk import DISK

try:
    import fcntl
except ImportError:  # Windows: the second witness decides
    fcntl = None  # type: ignore[assignment]

_TRIES = 200
_PAUSE_S = 0.005
_OWNER_BYTES = 64


def hold(path: Path) -> int:
    """Take the lock and return its descriptor; it is held until the process ends. A prober may be in the way a moment.

    Raises:
        BlockingIOError: another process holds it.
    """
    handle = DISK.open(path, os.O_CREAT | os.O_RDWR)
    if fcntl is None:
        return handle
    for attempt in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == _TRIES - 1:
                os.close(handle)
                raise
            time.sleep(_PAUSE_S)
        else:
            break
    return handle


def hold_now(path: Path, *, owner: str) -> int:
    """Take the lock or fail at once; who holds it is written into the file, for messages only.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file can't be opened.
    """
    handle = DISK.open(path, os.O_CREAT | os.O_RDWR)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.write(handle, owner.encode())
    except OSError:
        os.close(handle)
        raise
    return handle


def owner_of(path: Path) -> str | None:
    """Return the run that wrote itself into a lock file as its owner, for messages only; None if it says none."""
    try:
        handle = DISK.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        owner = os.read(handle, _OWNER_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(handle)
    return owner if is_run_id(owner) else None


def probe(path: Path) -> Literal["held", "free"] | None:
    """Say whether anybody holds the lock; None if that can't be told: no lock file, or a file system without locks."""
    if fcntl is None:
        return None
    try:
        handle = DISK.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "held"
    except OSError:
        return None
    else:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        return "free"
    finally:
        os.close(handle)
