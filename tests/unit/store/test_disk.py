"""Replace, create once and bounded reads, with rivals, readers, and things that are no files."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import MAX_DOCUMENT_BYTES, Disk

Fork = Callable[[Callable[[], int]], int]


def test_of_eight_processes_that_create_one_file_exactly_one_wins(
    tmp_path: Path, forked: Fork, ended: Callable[[int], int]
) -> None:
    for round_ in range(12):
        target = tmp_path / f"verdict-{round_}.json"
        start, go = os.pipe()

        def race(target: Path = target, start: int = start, go: int = go) -> int:
            os.close(go)
            os.read(start, 1)
            return 1 if Disk().create_once(target, str(os.getpid()).encode() * 200) else 0

        pids = [forked(race) for _ in range(8)]
        os.close(start)
        os.close(go)
        won = [pid for pid in pids if ended(pid) == 1]
        assert len(won) == 1
        assert target.read_bytes() == str(won[0]).encode() * 200
    assert len(list(tmp_path.iterdir())) == 12, "a temporary file was left"


def test_a_reader_beside_a_writer_sees_the_old_or_the_new_whole(
    tmp_path: Path, forked: Fork, ended: Callable[[int], int]
) -> None:
    target = tmp_path / "status.json"

    def document(number: int) -> bytes:
        return json.dumps({"number": number, "fill": "x" * (number % 7 * 900)}).encode()

    Disk().replace(target, document(0), durable=False)

    def work() -> int:
        for number in range(1, 1500):
            Disk().replace(target, document(number), durable=False)
        return 0

    pid, last, reads = forked(work), 0, 0
    deadline = time.monotonic() + 20
    while last < 1499 and time.monotonic() < deadline:
        number = json.loads(Disk().read(target))["number"]
        assert number >= last, "an older document came after a newer one"
        last, reads = number, reads + 1
    assert ended(pid) == 0
    assert last == 1499
    assert reads > 100
    assert list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_file_leave_one_whole_document(
    tmp_path: Path, forked: Fork, ended: Callable[[int], int]
) -> None:
    target = tmp_path / "status.json"

    def work() -> int:
        for number in range(500):
            Disk().replace(target, str(os.getpid()).encode() * (number + 1), durable=False)
        return 0

    pids = [forked(work) for _ in range(2)]
    assert [ended(pid) for pid in pids] == [0, 0]
    assert target.read_bytes() in [str(pid).encode() * 500 for pid in pids]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.row(23, cases=1)
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_and_directories_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        disk = Disk()
        disk.make_dir(tmp_path / "run")
        disk.replace(tmp_path / "run" / "a", b"a", durable=True)
        disk.create_once(tmp_path / "run" / "b", b"b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "run").iterdir()} == {0o600}


def test_a_link_is_not_followed_when_reading_and_not_written_through(tmp_path: Path) -> None:
    canary, link = tmp_path / "canary", tmp_path / "status.json"
    canary.write_text("secret")
    link.symlink_to(canary)
    with pytest.raises(Unreadable) as caught:
        Disk().read(link)
    assert caught.value.kind == "foreign"
    assert Disk().create_once(link, b"new") is False
    Disk().replace(link, b"new", durable=True)
    assert canary.read_text() == "secret"
    assert not link.is_symlink()


def test_a_dangling_link_is_something_foreign_and_is_no_free_place(tmp_path: Path) -> None:
    link = tmp_path / "verdict.json"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unreadable):
        Disk().read(link)
    assert Disk().create_once(link, b"new") is False
    assert not (tmp_path / "elsewhere").exists()


def test_a_pipe_a_directory_and_a_socket_in_place_of_a_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        began = time.monotonic()
        for name in ("pipe", "directory", "socket"):
            with pytest.raises(Unreadable) as caught:
                Disk().read(tmp_path / name)
            assert caught.value.kind == "foreign"
    assert time.monotonic() - began < 1
    with pytest.raises(Unreadable):
        Disk().read(Path("/dev/zero"))


def test_a_file_that_is_missing_or_lies_below_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, kind in ((tmp_path / "nothing", "missing"), (tmp_path / "file" / "below", "foreign")):
        with pytest.raises(Unreadable) as caught:
            Disk().read(path)
        assert caught.value.kind == kind


def test_a_file_of_any_size_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for size in (0, 1, 65535, 65536, 65537, MAX_DOCUMENT_BYTES):
        path.write_bytes(b"x" * size)
        assert len(Disk().read(path)) == size
    path.write_bytes(b"x" * (MAX_DOCUMENT_BYTES + 1))
    with pytest.raises(Unreadable) as caught:
        Disk().read(path)
    assert caught.value.kind == "too-large"


def _no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_without_hard_links_the_first_still_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _no_links)
    target = tmp_path / "verdict.json"
    assert Disk().create_once(target, b"first") is True
    assert Disk().create_once(target, b"second") is False
    assert target.read_bytes() == b"first"


def test_without_hard_links_a_refusing_disk_can_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: type
) -> None:
    monkeypatch.setattr(os, "link", _no_links)

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "result.json"
    disk = faulty(4, full)  # write, sync, link, then the rename below link
    with pytest.raises(OSError, match="No space"):
        disk.create_once(target, b"first")
    assert disk.create_once(target, b"again") is True
    assert target.read_bytes() == b"again"


def test_a_process_without_free_descriptors_says_busy_and_not_that_the_file_is_bad(
    tmp_path: Path, forked: Fork, ended: Callable[[int], int]
) -> None:
    (tmp_path / "status.json").write_text("{}")

    def work() -> int:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        try:
            Disk().read(tmp_path / "status.json")
        except Unreadable as error:
            return 7 if error.kind == "busy" else 8
        return 9

    assert ended(forked(work)) == 7
