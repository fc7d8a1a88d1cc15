"""Disks that do something else instead of some of their calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from subagents_nb.store.files.disk import Disk

Due = Callable[[int, str], bool]


class FaultyDisk(Disk):
    """Numbers its calls and does `act` instead of those that are `due`; a write is half done by then.

    Calls may come from two threads. `before` hears of every call.
    """

    def __init__(self, act: Callable[[], None], due: Due) -> None:
        self.calls = 0
        self.struck = 0
        self._act = act
        self._due = due
        self._guard = threading.Lock()

    def _is_due(self, name: str) -> bool:
        with self._guard:
            self.calls += 1
            due = self._due(self.calls, name)
            self.struck += due
            return due

    def _next(self, name: str) -> None:
        if self._is_due(name):
            self._act()

    def make_dir(self, path: Path) -> None:
        self._next("make_dir")
        super().make_dir(path)

    def open(self, path: Path, flags: int) -> int:
        self._next("open")
        return super().open(path, flags)

    def write(self, handle: int, data: bytes) -> None:
        if self._is_due("write"):
            os.write(handle, data[: len(data) // 2])
            self._act()
        super().write(handle, data)

    def sync(self, handle: int) -> None:
        self._next("sync")
        super().sync(handle)

    def link(self, temp: Path, path: Path) -> None:
        self._next("link")
        super().link(temp, path)

    def rename(self, source: Path, target: Path) -> None:
        self._next("rename")
        super().rename(source, target)

    def sync_dir(self, directory: Path) -> None:
        self._next("sync_dir")
        super().sync_dir(directory)


def raising(number: int) -> Callable[[], None]:
    """Return an act that fails as the system would."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def dying() -> NoReturn:
    os._exit(9)
