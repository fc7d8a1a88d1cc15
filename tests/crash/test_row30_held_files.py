"""A file that somebody holds open can't be replaced on Windows for as long. Simulated: there is no Windows here.

Closing a console and paths beyond its length are not tried.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.store.files.disk import Disk

Case = Callable[..., None]


class Held(Disk):
    """Refuses to rename, as Windows does, until so much time has been waited."""

    waits_for_readers = True

    def __init__(self, held_s: float) -> None:
        self.left_s = held_s
        self.waited_s = 0.0

    def pause(self, seconds: float) -> None:  # type: ignore[override]
        self.waited_s += seconds
        self.left_s -= seconds

    def _rename(self, source: Path, target: Path) -> None:  # type: ignore[override]
        if self.left_s > 0:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        Disk._rename(source, target)


@pytest.mark.row(30, cases=200)
def test_a_file_that_is_held_for_a_second_is_replaced_all_the_same(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "status.json"
    for number in range(200):
        disk = Held(number * 0.005)
        disk.replace(path, b"%d" % number, durable=False)
        assert path.read_bytes() == b"%d" % number
        assert [one.name for one in tmp_path.iterdir()] == ["status.json"]
        assert disk.waited_s < 1.2
        case()


@pytest.mark.row(30, cases=1)
def test_one_that_is_held_for_longer_is_reported_and_keeps_what_it_was(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(b"old")
    with pytest.raises(PermissionError):
        Held(2.0).replace(path, b"new", durable=False)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["status.json"]
    case()
