"""The waiting line: a file for each run that waits for a place. It outlives whoever keeps it.

    capacity/turn-RUN.LIMIT    what a run needs to begin; the limit on live runs that its launcher went by

The launcher makes it before the run has a status, and whoever begins the run, or sees that it is over, removes it. Runs
stand in the order of their ids, which is that of their launches. The limit is 0 while a run can't begin whatever place
is free: then nobody need stay behind it. No value of a variable is written here, only names.

Whoever begins a waiting run, or becomes its keeper, holds a lock on the file for that moment: no two can.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.layout import StoreHome

try:
    import fcntl
except ImportError:  # Windows: there is no line, for places are not counted
    fcntl = None  # type: ignore[assignment]

_TURN = re.compile(r"turn-([^.]+)\.(\d{1,9})\Z")


class Turn(NamedTuple):
    """One that waits."""

    run_id: str
    limit: int  # 0: it lacks something
    path: Path


class Needs(NamedTuple):
    """What a run needs of whoever begins it: the interpreter it was launched under, and variables by their names."""

    limit: int
    python: str
    variables: tuple[str, ...] = ()


def enter(home: StoreHome, run_id: str, limit: int, variables: Iterable[str] = ()) -> None:
    """Put a run at the end of the line.

    Raises:
        OSError: the file can't be made.
    """
    home.capacity.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    needs = {"limit": limit, "python": sys.executable, "variables": sorted(variables)}
    DISK.replace(_path(home, run_id, limit), json.dumps(needs).encode(), durable=False)


def standing(home: StoreHome) -> list[Turn]:
    """Return those that wait, the first in turn first."""
    try:
        names = os.listdir(home.capacity)
    except OSError:
        return []
    matches = (match for match in map(_TURN.match, names) if match is not None and is_run_id(match[1]))
    return sorted(Turn(match[1], int(match[2]), home.capacity / match[0]) for match in matches)


def wanted(names: Iterable[str]) -> int:
    """Return the highest limit in a listing of places: one that waits could begin while fewer than that are live."""
    return max((int(match[2]) for match in map(_TURN.match, names) if match is not None), default=0)


def find(home: StoreHome, run_id: str) -> Turn | None:
    """Return a run's place in the line, or None if it stands in none."""
    return next((turn for turn in standing(home) if turn.run_id == run_id), None)


def needs_of(turn: Turn) -> Needs | None:
    """Return what a run needs; None if that can't be read."""
    try:
        record = json.loads(DISK.read(turn.path))
        return Needs(int(record["limit"]), str(record["python"]), tuple(map(str, record["variables"])))
    except (OSError, Unreadable, ValueError, KeyError, TypeError):
        return None


def leave(home: StoreHome, run_id: str) -> None:
    """Take a run out of the line, if it stands there."""
    for turn in standing(home):
        if turn.run_id == run_id:
            with contextlib.suppress(OSError):
                DISK.remove(turn.path)


def hold_up_nobody(home: StoreHome, turn: Turn, *, limit: int) -> None:
    """Say which limit a run in the line goes by from now on; 0: it can't begin, and others may pass it."""
    with contextlib.suppress(OSError):
        turn.path.rename(_path(home, turn.run_id, limit))


@contextlib.contextmanager
def claimed(home: StoreHome, run_id: str) -> Iterator[bool | None]:
    """Be the only one who decides about a run in the line. False: another does so now. None: it stands in none."""
    turn = find(home, run_id)
    if turn is None or fcntl is None:
        yield None if turn is None else True
        return
    try:
        handle = DISK.open(turn.path, os.O_RDWR)
    except FileNotFoundError:
        yield None
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            yield True
            return
        now = find(home, run_id)  # it may have begun while we opened its file
        yield True if now is not None and _is_same(handle, now.path) else None
    finally:
        os.close(handle)


def _is_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _path(home: StoreHome, run_id: str, limit: int) -> Path:
    return home.capacity / f"turn-{run_id}.{limit}"
