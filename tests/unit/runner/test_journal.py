"""What a runner writes: on a disk that refuses, with text that is odd, from two threads, once."""

from __future__ import annotations

import errno
import itertools
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_status, make_step, run_id

from subagents_nb.domain.runs.events import (
    ChangedMeanwhile,
    EngineEvent,
    FileChanged,
    ModelAsked,
    ModelNamed,
    Noticed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
)
from subagents_nb.domain.runs.records import StepResult, first_step
from subagents_nb.domain.runs.states import RunEvent, RunState, StepEvent, StepState
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.files.disk import Disk


class Refusing(Disk):
    """Refuses to replace or link, as often as it is told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.replaces = self.links = 0

    def rename(self, source: Path, target: Path) -> None:
        if self.replaces:
            self.replaces -= 1
            raise OSError(self.number, "refused")
        super().rename(source, target)

    def link(self, temp: Path, path: Path) -> None:
        if self.links:
            self.links -= 1
            raise OSError(self.number, "refused")
        super().link(temp, path)


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def disk() -> Refusing:
    return Refusing(errno.ENOSPC)


@pytest.fixture
def journal(home: StoreHome, disk: Refusing) -> Journal:
    create_run(home, make_plan(), make_recovery())
    first = make_status(state=RunState.QUEUED, steps=(first_step(make_step()),))
    writer = RunWriter(home.run(run_id()), disk=disk)
    writer.status(first, milestone=True)
    made = Journal(writer, make_plan(), first, WorkClock())
    made.step_began(0)
    made.start()
    return made


def finish(journal: Journal, step: StepResult, **end: Any) -> bool:
    journal.step_ended(step)
    return journal.finish(**end)


def done(journal: Journal, text: str = "done") -> StepResult:
    return journal.draft(0).to(StepEvent.COMPLETE, text=text)


def events(home: StoreHome) -> list[dict[str, object]]:
    return [json.loads(line) for line in home.run(run_id()).events.read_bytes().splitlines()]


def test_a_run_is_running_on_disk_before_it_works(home: StoreHome, journal: Journal) -> None:
    assert FileRuns(home).snapshot(run_id()).state is RunState.RUNNING
    assert [e["type"] for e in events(home)] == ["run-started"]


def test_the_first_end_is_the_only_one(home: StoreHome, journal: Journal) -> None:
    assert finish(journal, done(journal), event=RunEvent.COMPLETE) is True
    late = journal.draft(0).model_copy(update={"state": StepState.STOPPED})
    assert finish(journal, late, event=RunEvent.STOP, reason="stopped", error="late") is False
    before = home.run(run_id()).status.read_bytes()
    journal.report(0, TextStreamed("after the end"))
    journal.flush()
    journal.status.milestone("stop-requested", {}, stopping=True)
    snapshot = FileRuns(home).snapshot(run_id(), whole=True)
    assert (snapshot.state, snapshot.error) == (RunState.COMPLETE, None)
    assert home.run(run_id()).status.read_bytes() == before
    assert snapshot.status is not None and snapshot.status.state is RunState.COMPLETE


def test_of_many_threads_that_end_a_run_one_does(home: StoreHome, journal: Journal) -> None:
    won: list[bool] = []
    step, start = done(journal), threading.Barrier(8)

    def end() -> None:
        start.wait()
        won.append(finish(journal, step, event=RunEvent.COMPLETE))

    threads = [threading.Thread(target=end) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 1


def test_a_full_disk_stops_progress_and_not_the_work(home: StoreHome, journal: Journal, disk: Refusing) -> None:
    disk.replaces = 10**6
    for number in range(50):
        journal.report(0, TextStreamed(f"{number} "))
        journal.flush()
    assert FileRuns(home).snapshot(run_id()).damage == ()
    disk.replaces, disk.links = 0, 2
    assert finish(journal, done(journal), event=RunEvent.COMPLETE)
    assert FileRuns(home).snapshot(run_id()).text == "done"
    assert not list(home.run(run_id()).root.glob("*.tmp")) + list(home.run(run_id()).root.glob(".*.tmp"))


def test_a_run_whose_directory_is_gone_ends_without_making_it_anew(home: StoreHome, journal: Journal) -> None:
    shutil.rmtree(home.run(run_id()).root)
    journal.report(0, TextStreamed("x"))
    journal.flush()
    assert finish(journal, done(journal), event=RunEvent.COMPLETE)
    assert not home.run(run_id()).root.exists()


def test_a_result_that_no_disk_takes_is_no_complete_run(
    home: StoreHome,
    journal: Journal,
    disk: Refusing,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)  # ten minutes of asking again
    clock = itertools.count(1.0, 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    disk.links = 10**6
    assert finish(journal, done(journal), event=RunEvent.COMPLETE)
    assert journal.unstored
    snapshot = FileRuns(home).snapshot(run_id())
    assert (snapshot.state, snapshot.reason, snapshot.result) == (RunState.FAILED, "not-stored", None)
    assert "could not be stored: No space left on device. Make room" in str(snapshot.error)
    assert events(home)[-1]["state"] == "failed"
    assert "result not stored: No space left on device" in capsys.readouterr().err


HALF = "\ud83d"
ODD: list[EngineEvent] = [
    TextStreamed(f"a{HALF}"),
    ThoughtStreamed(HALF),
    ToolStarted("c", f"read{HALF}", f'{{"path": "{HALF}"}}'),
    ToolEnded("c", ok=False, seconds=0.1, preview=HALF, refused=HALF),
    ModelNamed(HALF),
    Noticed("code", HALF),
    FileChanged("\udcff.csv"),
    ChangedMeanwhile("\udcfe.csv"),
    ModelAsked(2),
]


def test_half_a_character_from_a_model_costs_neither_events_nor_status_nor_result(
    home: StoreHome, journal: Journal
) -> None:
    for event in ODD:
        journal.report(0, event)
    journal.flush()
    snapshot = FileRuns(home).snapshot(run_id())
    assert snapshot.damage == () and snapshot.state is RunState.RUNNING
    assert finish(journal, done(journal, f"b{HALF}"), event=RunEvent.FAIL, reason="model", error=f"no {HALF}")
    snapshot = FileRuns(home).snapshot(run_id())
    assert (snapshot.state, snapshot.text[:1]) == (RunState.FAILED, "b")
    lines = events(home)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    json.dumps(lines, ensure_ascii=False).encode()


@pytest.mark.parametrize("char", ["x", "é", "漢", "🙂", "\0", "\n", '"'], ids=ascii)
def test_streamed_text_is_whole_in_lines_that_are_written_whole(home: StoreHome, journal: Journal, char: str) -> None:
    journal.report(0, TextStreamed(char * 5000))
    finish(journal, done(journal), event=RunEvent.COMPLETE)
    raw = home.run(run_id()).events.read_bytes().splitlines(keepends=True)
    assert all(len(line) <= 4096 for line in raw)
    assert "".join(str(e["text"]) for e in events(home) if e["type"] == "text") == char * 5000


def test_statuses_are_coalesced_to_ten_a_second(home: StoreHome, journal: Journal) -> None:
    for number in range(2000):
        journal.report(0, TextStreamed(f"{number} "))
    status = FileRuns(home).snapshot(run_id()).status
    assert status is not None and status.seq < 20
