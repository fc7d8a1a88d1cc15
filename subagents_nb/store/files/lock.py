"""Proof of life: a runner holds an exclusive lock on a file of its run; the system takes it away when it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import StoreError, SubagentsError
from subagents_nb.store.files.disk import DISK

try:
    import fcntl
except ImportError:  # Windows: the second witness decides
    fcntl = None  # type: ignore[assignment]

_PAUSE_S = 0.002
_OWNER_BYTES = 64


def hold(path: Path, *, owner: str | None = None, patience_s: float = 1.0) -> int:
    """Take the lock and return its descriptor; it is held until the process ends. A prober may be in the way a moment.

    An `owner` is written into the file, for messages only.

    Raises:
        BlockingIOError: another process holds it, for `patience_s`.
        OSError: the file can't be opened, or this file system has no locks.
    """
    handle = DISK.open(path, os.O_CREAT | os.O_RDWR)
    try:
        wait_for(handle, patience_s)
        if owner is not None:
            os.ftruncate(handle, 0)
            os.write(handle, owner.encode())
    except BaseException:
        os.close(handle)
        raise
    return handle


def hold_now(path: Path, *, owner: str) -> int:
    """Take the lock as `hold` does, or fail at once."""
    return hold(path, owner=owner, patience_s=0)


def wait_for(handle: int, patience_s: float) -> None:
    """Lock an open file. Raises as `hold`."""
    deadline = time.monotonic() + patience_s
    while fcntl is not None:
        try:
            # No lock of fcntl(2): it ends when the process closes any descriptor of the file, and no fork shares it.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            break


@contextlib.contextmanager
def exclusive(path: Path, *, what: str, busy: SubagentsError, patience_s: float = 0.0) -> Iterator[None]:
    """Hold a lock while something is done that nobody else may do meanwhile.

    Raises:
        SubagentsError: `busy`, for another process has held it all the time.
        StoreError: `what` it is about can't be locked.
    """
    try:
        handle = hold(path, owner=str(os.getpid()), patience_s=patience_s)
    except BlockingIOError:
        raise busy from None
    except OSError as error:
        raise StoreError(f"{what} can't be locked: {error.strerror}.") from error
    try:
        yield
    finally:
        os.close(handle)


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
    with contextlib.suppress(OSError):
        return look(path)
    return None


def look(path: Path) -> Literal["held", "free"] | None:
    """Do the same, but raise OSError where the file can't be opened."""
    if fcntl is None:
        return None
    handle = DISK.open(path, os.O_RDONLY)
    try:
        # Shared, for over NFS an exclusive one needs a file that is open for writing: flock(2).
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
