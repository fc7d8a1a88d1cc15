"""Names below a directory by a glob: each directory is looked into once, whatever the pattern.

A pattern such as `**/**/**/x` makes `Path.glob` look at a tree as often as there are ways to read the pattern, see
python/cpython#102613; patterns come from models. Here all readings of it go down the tree together.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MOST_ENTRIES = 500_000
MOST_CHARS = 1000
_DEEP = "**"
_Places = frozenset[int]  # how many parts of the pattern are read, for each way to read it


class TooMuch(Exception):
    """The walk is longer than what was allowed; the text says in which way."""


@dataclass(slots=True)
class Allowance:
    """How long walks may take together, and how much they may look at. `ended` says that nobody waits any more."""

    seconds: float | None = None
    entries: int = MOST_ENTRIES
    ended: Callable[[], bool] = lambda: False
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = float("inf") if self.seconds is None else time.monotonic() + self.seconds

    def check(self, entries: int = 0) -> None:
        """Count what was looked at.

        Raises:
            TooMuch: that was more than was allowed, or took longer.
        """
        self.entries -= entries
        if self.entries < 0:
            raise TooMuch("there are too many files to look at all of them")
        if time.monotonic() > self._until or self.ended():
            raise TooMuch(f"it takes longer than {self.seconds:g} s" if self.seconds is not None else "it was ended")


def walk(
    folder: str, pattern: str, allowance: Allowance, *, hidden: Callable[[str], bool] = lambda name: name[0] == "."
) -> Iterator[str]:
    """Give the paths below `folder` that a glob finds, relative to it, in no order; no `hidden` name is in them.

    `**` leads through no symbolic link. What leads out of the folder, or is no pattern, finds nothing.

    Raises:
        TooMuch: as the allowance says.
    """
    if len(pattern) > MOST_CHARS:
        raise TooMuch(f"the pattern is longer than {MOST_CHARS:,} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or pattern.startswith("/") or ".." in parts or "\0" in pattern:
        return
    tests = [None if part == _DEEP else re.compile(fnmatch.translate(part)).match for part in parts]
    end = len(parts)

    def closed(places: set[int]) -> _Places:
        for place in range(end):
            if place in places and tests[place] is None:
                places.add(place + 1)
        return frozenset(places)

    waiting: list[tuple[str, _Places]] = [("", closed({0}))]
    while waiting:
        where, places = waiting.pop()
        for entry in _entries(os.path.join(folder, where), allowance):
            if hidden(entry.name):
                continue
            along = {place for place in places if place < end and tests[place] is None}
            through = {place + 1 for place in places if place < end and (t := tests[place]) and t(entry.name)}
            frontier = closed(along | through)
            path = f"{where}/{entry.name}" if where else entry.name
            if end in frontier:
                yield path
            further = _further(entry, closed(through), frontier)
            if any(place < end for place in further):
                waiting.append((path, further))


def _further(entry: os.DirEntry[str], through: _Places, frontier: _Places) -> _Places:
    try:
        if entry.is_symlink():
            return through if entry.is_dir() else frozenset()
        return frontier if entry.is_dir() else frozenset()
    except OSError:
        return frozenset()


def _entries(folder: str, allowance: Allowance) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number % 100 == 0:
                    allowance.check(100)
                yield entry
    except OSError:
        return
