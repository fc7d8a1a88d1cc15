"""Whose doing a change is: what the kernel noted of itself, held against what the watch saw of everybody."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from subagents_nb.runner.tracking import Since
from subagents_nb.store.files.opener import open_below

Whose = Literal["own", "shared", "unknown"]
LOG = "written"  # in the kernel's private directory
_MOST_BYTES = 64 * 1024 * 1024


class Written:
    """The kernel's notes of what it writes. Its word counts for itself only: it is code of a model.

    Each opening for writing is closed once, and each move arrives once. Where the watch saw more of them than the
    kernel noted, somebody else wrote the file as well.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at = 0
        self._open: Counter[str] = Counter()  # opened by the kernel, and not seen to be closed yet
        self._noted: Counter[str] = Counter()
        self._names: set[str] = set()
        self._moved: set[str] = set()
        self._own: set[str] = set()  # as the system says of this very process, and
        self._others: set[str] = set()  # of others
        self._lost = False  # the system could not keep all that it had to say

    def restart(self) -> None:
        """Take it that the kernel is gone, and its log with it."""
        self._at = 0
        self._open.clear()

    def take(self) -> None:
        """Take in what was noted meanwhile."""
        data = b""
        with contextlib.suppress(OSError), open_below(self._folder, LOG) as handle:
            os.lseek(handle, self._at, os.SEEK_SET)
            while len(data) < _MOST_BYTES and (piece := os.read(handle, 1 << 20)):
                data += piece
        records = data[: data.rfind(b"\0") + 1]
        self._at += len(records)
        for note in records.split(b"\0")[:-1]:
            path = os.fsdecode(note[1:])
            if note[:1] == b"!":
                self._lost = True
                continue
            if note[:1] == b"t":
                self._others.add(path)
                continue
            self._names.add(path)
            if note[:1] == b"o":
                self._own.add(path)
            if note[:1] in b"wm":
                self._noted[path] += 1
            if note[:1] in b"mx":
                self._moved.add(path)

    @property
    def names(self) -> frozenset[str]:
        """Return what was noted in this window."""
        return frozenset(self._names)

    def whose(self, path: str, since: Since | None) -> Whose:
        """Return whose a change of this window is. Without a watch only the kernel's word is there."""
        name = path.rstrip("/")
        own = name in self._names or any(above in self._moved for above in _above(name)) or self._open[name] > 0
        if not own:
            return "unknown"
        if since is None:
            return "own"
        if name in self._own and name not in self._others and name not in since.unfinished and not self._lost:
            return "own"
        # Two who close right after one another are one event to inotify(7), and two to fanotify.
        mine = self._open[name] + self._noted[name]
        all_of_them = max(since.writes[name], (name in self._own) + (name in self._others))
        others = all_of_them > mine or (name in since.unfinished and all_of_them == mine)
        return "shared" if others else "own"

    def end(self, since: Since | None) -> None:
        """End the window: what was closed in it is open no more."""
        self._open += self._noted
        if since is not None:
            self._open -= since.writes  # never below zero
        else:
            self._open.clear()
        self._noted, self._names, self._moved, self._own, self._others = Counter(), set(), set(), set(), set()


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
