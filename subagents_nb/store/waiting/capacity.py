"""How many runs of a user may be live at once. A place is a file lock that the runner holds until its process ends.

    capacity/place-000 ...   one live run each, by the lock; the number says nothing
             turn-RUN.LIMIT  a run that waits for one; see `line`
             back-RUN        a run at work that gave its place back and wants one again, by the lock
             lock            held by whoever counts, for well under a millisecond

The launcher takes a place and hands the open descriptor to the runner, so a place is bound to exactly one process, and
the system itself gives it back, however that process ends: there is nothing to leak and nothing to clean up.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.store.files.disk import DISK, PRIVATE_DIR, PRIVATE_FILE
from subagents_nb.store.files.inside import names_in
from subagents_nb.store.files.lock import look, wait_for
from subagents_nb.store.files.opener import NO_LINK
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.waiting import line

try:
    import fcntl
except ImportError:  # Windows: places are not counted there
    fcntl = None  # type: ignore[assignment]

_PLACE = re.compile(r"place-(\d{3,9})\Z")
_BACK = "back-"
_FLAGS = os.O_CREAT | os.O_RDWR | NO_LINK
_PATIENCE_S = 1.0


def take_slot(home: StoreHome, limit: int, *, waited: bool = False, back: bool = False) -> int | None:
    """Return a descriptor that holds a place if fewer than `limit` runs are live. Whoever closes it last frees it.

    None if there is no place, or if a run that waits could have it; who keeps the queue says `waited` and passes that.
    A run at work that wants its place `back` comes before all others.

    Raises:
        OSError: the files can't be made.
    """
    home.capacity.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    if fcntl is None:
        return _open(_slot_path(home, 0))
    try:
        with _counting(home):
            return _take(home, limit, waited=waited or back, back=back)
    except BlockingIOError:
        return None  # somebody who counts was halted in the middle of it
    except _NoLocks:
        return _open(_slot_path(home, 0))


def give_back(handle: int) -> None:
    """Free the place that a descriptor holds, whoever else has it open: flock(2)."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextlib.contextmanager
def coming_back(home: StoreHome, run_id: str) -> Iterator[None]:
    """Have nobody else take the next place: a run at work wants one again. Where there are no locks, nobody knows."""
    path, handle = home.capacity / f"{_BACK}{run_id}", None
    if fcntl is not None:
        with contextlib.suppress(OSError), _counting(home):
            handle = _lock(path)
    try:
        yield
    finally:
        if handle is not None:
            _remove(path)
            os.close(handle)


def slots_taken(home: StoreHome) -> int:
    """Return how many places are taken now."""
    if fcntl is None or not home.capacity.is_dir():
        return 0
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(_counting(home))  # a launcher that counts must not meet our probes
        return sum(_is_held(_slot_path(home, number)) for number in _numbers(names_in(home.capacity)))


class _NoLocks(OSError):
    """The file system has no locks, so nothing can be counted."""


def _take(home: StoreHome, limit: int, *, waited: bool, back: bool) -> int | None:
    """Take the free place with the lowest number. Those beyond the limit that nobody holds are done away with."""
    names = names_in(home.capacity)
    folder = f"{home.capacity}{os.sep}"
    taken, free = 0, None
    numbers = _numbers(names)
    try:
        for number in numbers:
            handle = _lock(f"{folder}place-{number:03d}")
            if handle is None:
                taken += 1
            elif free is None:
                free = handle
            else:
                if number >= limit:
                    _remove(_slot_path(home, number))
                os.close(handle)
        if not back:
            taken += _coming_back(home, names)
        if taken >= limit or (not waited and line.wanted(names) > taken):
            return None
        kept, free = free, None
        return kept if kept is not None else _lock(_slot_path(home, _lowest(numbers)))
    finally:
        if free is not None:
            os.close(free)


def _coming_back(home: StoreHome, names: list[str]) -> int:
    """Return how many want a place again; what one left that died is done away with."""
    count = 0
    for path in (home.capacity / name for name in names if name.startswith(_BACK)):
        handle = _lock(path)
        if handle is None:
            count += 1
        else:
            _remove(path)
            os.close(handle)
    return count


@contextlib.contextmanager
def _counting(home: StoreHome) -> Iterator[None]:
    """Be the only one who counts.

    Raises:
        BlockingIOError: somebody else has counted for a second.
        _NoLocks: this file system has none.
    """
    handle = _open(home.capacity / "lock")
    try:
        try:
            wait_for(handle, _PATIENCE_S)
        except BlockingIOError:
            raise
        except OSError as error:
            raise _NoLocks(*error.args) from error
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _numbers(names: list[str]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := _PLACE.match(name)))


def _slot_path(home: StoreHome, number: int) -> Path:
    return home.capacity / f"place-{number:03d}"


def _lowest(numbers: list[int]) -> int:
    return next(number for number in range(len(numbers) + 1) if number not in numbers)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        DISK.remove(path)


def _open(path: Path) -> int:
    return DISK.open(path, os.O_CREAT | os.O_RDWR)


def _lock(path: Path | str) -> int | None:
    """Return a descriptor that holds the lock; None if another process does."""
    # What `Disk.open` does outside of a run: each launch comes here once for every place that there is.
    handle = os.open(path, _FLAGS, PRIVATE_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return handle


def _is_held(path: Path) -> bool:
    """Say whether a place is taken. Without descriptors it raises, unlike `probe`: what can't be seen is not free."""
    with contextlib.suppress(FileNotFoundError):
        return look(path) == "held"
    return False
