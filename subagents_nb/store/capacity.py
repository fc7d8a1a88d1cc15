"""How many runs of a user may be live at once. A place is a file lock that the runner holds until its process ends.

The launcher takes the lock and hands the open descriptor to the runner, so a place is bound to exactly one process, and
the system itself gives it back, however that process ends: there is nothing to leak and nothing to clean up.
"""

from __future__ import annotations

import os

from subagents_nb.store.disk import DISK, PRIVATE_DIR
from subagents_nb.store.layout import StoreHome

try:
    import fcntl
except ImportError:  # Windows: places are not counted there
    fcntl = None  # type: ignore[assignment]


def take_place(home: StoreHome, limit: int) -> int | None:
    """Return a descriptor that holds one of `limit` places, or None if all are taken. Whoever closes it last frees it.

    Raises:
        OSError: the files can't be made.
    """
    home.capacity.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    for number in range(limit):
        handle = DISK.open(home.capacity / f"place-{number:03d}", os.O_CREAT | os.O_RDWR)
        if fcntl is None:
            return handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
        except OSError:
            return handle  # a file system without locks can't count
        else:
            return handle
    return None


def places_taken(home: StoreHome) -> int:
    """Return how many places are taken now."""
    if fcntl is None or not home.capacity.is_dir():
        return 0
    taken = 0
    for path in home.capacity.glob("place-*"):
        handle = DISK.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            taken += 1
        finally:
            os.close(handle)
    return taken
