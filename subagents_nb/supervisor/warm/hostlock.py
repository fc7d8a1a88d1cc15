"""A supervisor's first act, before it imports anything that takes time: nobody else of its key is to come up."""

from __future__ import annotations

import os
import time

from subagents_nb.signals import ticks_of

_TRIES, _PAUSE_S = 20, 0.005


def take_lock(path: str) -> int | None:
    """Return the descriptor of the lock, held until the process and its forks have ended; None if another has it.

    A prober may be in the way a moment.
    """
    import fcntl

    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return handle
    os.close(handle)
    return None


def sign(handle: int) -> None:
    """Write into the lock who holds it, so that others see how that process is, and that it is a supervisor."""
    # Not on Linux: then its number alone says little, and nobody goes by it.
    content = f"{os.getpid()} {ticks_of(os.getpid()) or ''}".encode()
    os.pwrite(handle, content, 0)
    os.ftruncate(handle, len(content))
