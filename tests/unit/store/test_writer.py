"""Every file call of a write made to fail, or to be the process's last: old or new, whole, and nothing left over."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support import make_answer, make_plan, make_recovery, make_request, make_result, make_status, run_id

from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run
from subagents_nb.store.files.disk import Disk

ERRORS = [errno.ENOSPC, errno.EACCES, errno.EIO]
MANY = 60


def raising(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def temps(root: Path) -> list[Path]:
    return [p for p in root.rglob("*") if p.name.endswith(".tmp")]


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_a_launch_refused_by_the_disk_at_any_call_leaves_nothing(home: StoreHome, faulty: type, number: int) -> None:
    for at in range(1, MANY):
        disk = faulty(at, raising(number))
        try:
            create_run(home, make_plan(), make_recovery(), disk=disk)
        except StoreError as error:
            assert os.strerror(number) in str(error)
            assert list(home.runs.iterdir()) == []
        else:
            break
    assert at > 8, "too few calls were tried"
    assert FileRuns(home).snapshot(run_id(1)).state is RunState.QUEUED


def test_a_launcher_that_dies_at_any_call_leaves_a_whole_plan_or_none(
    home: StoreHome, faulty: type, forked: Callable[..., int], ended: Callable[[int], int]
) -> None:
    import shutil

    codes = []
    for at in range(1, MANY):
        shutil.rmtree(home.runs)
        home.runs.mkdir(mode=0o700)

        def work(at: int = at) -> int:
            create_run(home, make_plan(), make_recovery(), disk=faulty(at, lambda: os._exit(9)))
            return 0

        codes.append(ended(forked(work)))
        ids = FileRuns(home).ids()
        assert ids in ([], [run_id(1)])
        for one in ids:
            snapshot = FileRuns(home).snapshot(one, whole=True)
            assert snapshot.state in (RunState.QUEUED, None)
            assert all(d.kind == "missing" for d in snapshot.damage)
        assert len(temps(home.runs)) <= 1
        if codes[-1] == 0:
            break
    assert codes[-1] == 0 and set(codes[:-1]) == {9} and len(codes) > 8


@pytest.fixture
def writer(home: StoreHome) -> RunWriter:
    made = create_run(home, make_plan(), make_recovery())
    made.status(make_status(seq=1), milestone=True)
    return made


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("milestone", [True, False])
def test_a_status_refused_at_any_call_leaves_the_old_or_the_new_one(
    home: StoreHome, writer: RunWriter, faulty: type, number: int, milestone: bool
) -> None:
    failed = 0
    for at in range(1, MANY):
        disk = faulty(at, raising(number))
        old = FileRuns(home).snapshot(run_id(1)).status
        assert old is not None
        try:
            RunWriter(writer.paths, disk=disk).status(make_status(seq=at + 1), milestone=milestone)
        except OSError:
            failed += 1
        now = FileRuns(home).snapshot(run_id(1)).status
        assert now is not None and now.seq in (old.seq, at + 1)
        assert temps(home.runs) == []
        if disk.calls < at:
            break
    assert failed == (4 if milestone else 2)


def test_a_runner_that_dies_at_any_call_of_a_status_or_result_leaves_old_or_new(
    home: StoreHome, writer: RunWriter, faulty: type, forked: Callable[..., int], ended: Callable[[int], int]
) -> None:
    deaths = 0
    for at in range(1, MANY):

        def work(at: int = at) -> int:
            mine = RunWriter(writer.paths, disk=faulty(at, lambda: os._exit(9)))
            mine.status(make_status(seq=at + 1), milestone=True)
            mine.result(make_result())
            return 0

        code = ended(forked(work))
        deaths += code == 9
        snapshot = FileRuns(home).snapshot(run_id(1), whole=True)
        assert snapshot.damage == ()
        assert snapshot.status is not None
        assert snapshot.state in (RunState.RUNNING, RunState.COMPLETE)
        if code == 0:
            break
        writer.paths.result.unlink(missing_ok=True)
    assert deaths >= 8


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_a_result_refused_at_any_call_can_be_written_again(
    home: StoreHome, writer: RunWriter, faulty: type, number: int
) -> None:
    for at in range(1, MANY):
        writer.paths.result.unlink(missing_ok=True)
        disk = faulty(at, raising(number))
        mine = RunWriter(writer.paths, disk=disk)
        try:
            mine.result(make_result())
        except OSError:
            mine.result(make_result())
        assert FileRuns(home).snapshot(run_id(1)).state is RunState.COMPLETE
        assert temps(home.runs) == []
        if disk.calls < at:
            break
    assert at > 3


def test_room_is_made_for_the_result(home: StoreHome, writer: RunWriter) -> None:
    writer.reserve()
    reserve = writer.paths.root / ".reserve"
    assert reserve.stat().st_size == 64 * 1024
    assert writer.result(make_result()) is True
    assert not reserve.exists()
    assert writer.result(make_result(error="second")) is False
    assert FileRuns(home).snapshot(run_id(1)).error is None


def test_events_are_whole_lines_and_a_long_one_is_cut_to_its_head(writer: RunWriter) -> None:
    writer.events.append({"seq": 1, "type": "text", "text": "short"}, keep=False)
    writer.events.append({"seq": 2, "type": "text", "text": "x" * 9000}, keep=False)
    writer.events.append({"seq": 3, "type": "text", "text": "half \ud83d"}, keep=False)
    lines = writer.paths.events.read_bytes().splitlines(keepends=True)
    assert all(len(line) <= 4096 and line.endswith(b"\n") for line in lines)
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
    assert writer.paths.events.stat().st_mode & 0o777 == 0o600


def test_a_request_is_heard_once_and_a_bad_one_is_named(writer: RunWriter) -> None:
    seen: set[str] = set()
    writer.mail.request(make_request())
    (writer.paths.control / "stop-forged.json").write_bytes(b"{")
    (writer.paths.control / "stop-dir.json").mkdir()
    os.mkfifo(writer.paths.control / "stop-pipe.json")
    heard = list(writer.mail.requests(seen))
    assert [type(h) for h in heard].count(ControlRequest) == 1
    assert len(heard) == 4, "a bad request was passed over in silence"
    assert list(writer.mail.requests(seen)) == []
    writer.mail.answer(make_answer())
    assert list(writer.mail.requests(seen)) == []


def test_a_request_that_could_not_be_opened_for_a_moment_is_heard_later(writer: RunWriter) -> None:
    class Busy(Disk):
        busy = True

        def read(self, path: Path) -> bytes:
            if self.busy:
                raise Unreadable("it can't be opened (Too many open files)", kind="busy")
            return super().read(path)

    disk = Busy()
    mine, seen = RunWriter(writer.paths, disk=disk), set[str]()
    mine.mail.request(make_request())
    assert [h for h in mine.mail.requests(seen) if isinstance(h, ControlRequest)] == []
    disk.busy = False
    assert len([h for h in mine.mail.requests(seen) if isinstance(h, ControlRequest)]) == 1


def test_requests_of_a_run_that_is_gone_are_none(writer: RunWriter) -> None:
    import shutil

    shutil.rmtree(writer.paths.root)
    assert list(writer.mail.requests(set())) == []
