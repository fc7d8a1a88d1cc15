"""What a killed runner had started stands on disk, or it stands there that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.domain.runs.exit_report import ChildEnd
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.processes import childlog
from subagents_nb.store.processes.childlog import ChildLog, read_children


def row(pid: int, *, what: str = "tool") -> ChildEnd:
    return ChildEnd.model_validate({"pid": pid, "start_ticks": pid * 10, "group": pid, "what": what})


def test_who_began_and_was_not_seen_to_end_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "children.jsonl"
    assert read_children(path) is None
    log = ChildLog(path)
    assert read_children(path) == ()
    for pid in (7, 8, 9):
        log.began(row(pid, what="notice" if pid == 9 else "tool"))
    log.ended(8)
    log.ended(1000)
    assert read_children(path) == (row(7), row(9, what="notice"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_torn_last_line_counts_for_nothing_and_a_broken_one_for_not_knowing(tmp_path: Path) -> None:
    path = tmp_path / "children.jsonl"
    ChildLog(path).began(row(7))
    with path.open("ab") as file:
        file.write(b'{"pid": 8, "start')
    assert read_children(path) == (row(7),)
    for broken in (b"\n", b"[]\n", b'{"pid": "x"}\n', b"\0\0\n", b'{"ended": true}\n', b'{"pid": 5, "more": 1}\n'):
        path.write_bytes(broken)
        assert read_children(path) is None


def test_a_long_account_is_written_anew_with_those_that_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(childlog, "_LONG_BYTES", 2000)
    path = tmp_path / "children.jsonl"
    log = ChildLog(path)
    log.began(row(7))
    for pid in range(100, 400):
        log.began(row(pid))
        log.ended(pid)
        assert row(7) in (read_children(path) or ())
    assert path.stat().st_size < 3000


class Refusing(Disk):
    """Takes no line while `full`."""

    full = False

    def write(self, handle: int, data: bytes) -> None:
        if self.full:
            super().write(handle, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        super().write(handle, data)


def test_what_a_full_disk_refused_is_made_good_when_there_is_room(tmp_path: Path) -> None:
    path, disk = tmp_path / "children.jsonl", Refusing()
    log = ChildLog(path, disk=disk)
    log.began(row(7))
    disk.full = True
    log.began(row(8))
    assert read_children(path) is None, "an account that lacks somebody looked whole"
    log.ended(7)
    disk.full = False
    log.began(row(9))
    assert read_children(path) == (row(8), row(9))


def test_an_account_that_cannot_be_read_now_is_not_taken_for_none(tmp_path: Path) -> None:
    class Busy(Disk):
        def read(self, path: object) -> bytes:
            raise Unreadable("not now", kind="busy")

    with pytest.raises(Unreadable):
        read_children(tmp_path / "children.jsonl", disk=Busy())
