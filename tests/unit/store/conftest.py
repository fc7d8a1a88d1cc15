"""A private store and a disk whose k-th call fails or never returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.store import StoreHome, open_home
from subagents_nb.store.files.disk import Disk


class FaultyDisk(Disk):
    """Counts its primitive calls and does something else instead of the k-th; a write is half done by then."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.calls = 0
        self._at = at
        self._act = act

    def _next(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            self._act()

    def make_dir(self, path: Path) -> None:
        self._next()
        super().make_dir(path)

    def write(self, handle: int, data: bytes) -> None:
        if self.calls + 1 == self._at:
            os.write(handle, data[: len(data) // 2])
        self._next()
        super().write(handle, data)

    def sync(self, handle: int) -> None:
        self._next()
        super().sync(handle)

    def link(self, temp: Path, path: Path) -> None:
        self._next()
        super().link(temp, path)

    def rename(self, source: Path, target: Path) -> None:
        self._next()
        super().rename(source, target)

    def sync_dir(self, directory: Path) -> None:
        self._next()
        super().sync_dir(directory)


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def fork(work: Callable[[], int]) -> int:
    """Run `work` in a forked child and return its pid; the child never comes back into the test."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def faulty() -> type[FaultyDisk]:
    return FaultyDisk


@pytest.fixture
def forked() -> Callable[[Callable[[], int]], int]:
    return fork


@pytest.fixture
def ended() -> Callable[[int], int]:
    return exit_code
