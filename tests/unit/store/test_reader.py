"""A list of runs with everything in it that can be wrong."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import make_plan, make_process, make_result, make_status, make_verdict, run_id

from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.errors import UnknownRun
from subagents_nb.launching.handle import Run
from subagents_nb.launching.listing import list_runs
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.codec import encode
from subagents_nb.store.runs.reader import read_tail, uncollected


def store(home: StoreHome, number: int, **documents: bytes) -> Path:
    root = home.run(run_id(number)).root
    root.mkdir(exist_ok=True)
    for name, data in documents.items():
        (root / f"{name}.json").write_bytes(data)
    return root


def test_corrupt_run_directories_are_rows_beside_the_good_ones(home: StoreHome) -> None:
    for number in range(1, 5):
        store(home, number, result=encode(make_result(number)))
    (home.runs / run_id(5)).write_text("a file")
    (home.runs / run_id(6)).mkdir()
    os.mkfifo(store(home, 7) / "status.json")
    (store(home, 8) / "status.json").symlink_to("/etc/passwd")
    (store(home, 9) / "result.json").mkdir()
    (home.runs / run_id(10)).symlink_to("nowhere")
    (home.runs / "not-a-run").mkdir()
    (home.runs / ".trash").mkdir()
    rows = list_runs(home, state=None, agent=None, name=None, limit=None)
    assert [row.id for row in rows] == [run_id(n) for n in range(10, 0, -1)]
    for row in rows:
        good = row.id <= run_id(4)
        assert (row.state is RunState.COMPLETE) is good
        assert good or (row.state is None and row.error)
        assert repr(row)


def test_readers_believe_result_then_verdict_then_status_then_plan(home: StoreHome) -> None:
    root, runs = store(home, 1, plan=encode(make_plan())), FileRuns(home)
    believed = [runs.snapshot(run_id(1)).state]
    for name, document in (("status", make_status()), ("verdict", make_verdict()), ("result", make_result())):
        (root / f"{name}.json").write_bytes(encode(document))
        believed.append(runs.snapshot(run_id(1)).state)
    assert believed == [RunState.QUEUED, RunState.RUNNING, RunState.LOST, RunState.COMPLETE]


def test_the_whole_of_a_run_has_plan_and_process_too(home: StoreHome) -> None:
    store(home, 1, plan=encode(make_plan()), result=encode(make_result()), process=encode(make_process()))
    snapshot = FileRuns(home).snapshot(run_id(1), whole=True)
    assert snapshot.plan == make_plan() and snapshot.process == make_process() and snapshot.damage == ()
    assert FileRuns(home).snapshot(run_id(1)).plan is None


def test_a_run_at_work_that_wrote_nothing_for_long_is_said_to_be_silent(home: StoreHome) -> None:
    root, runs = store(home, 1, plan=encode(make_plan())), FileRuns(home)

    def silent(state: RunState, seconds: float) -> bool:
        written = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
        (root / "status.json").write_bytes(encode(make_status(state=state, updated_at=written)))
        found = runs.snapshot(run_id(1)).attention
        return found is not None and found.kind == "unheard"

    assert silent(RunState.RUNNING, 65)
    assert not silent(RunState.RUNNING, 5)
    assert not silent(RunState.RUNNING, -3600)  # the clock was put back meanwhile
    assert not silent(RunState.QUEUED, 65)
    (root / "verdict.json").write_bytes(encode(make_verdict()))
    assert not silent(RunState.RUNNING, 65)


def test_a_missing_store_has_no_runs(tmp_path: Path) -> None:
    assert FileRuns(StoreHome(tmp_path / "nothing")).ids() == []


def test_a_run_that_is_gone_says_so(home: StoreHome) -> None:
    snapshot = FileRuns(home).snapshot(run_id(1))
    assert snapshot.ended and snapshot.state is None
    assert snapshot.error == "run can't be read: the run's directory is gone"


def test_a_text_that_is_no_id_is_not_read(home: StoreHome) -> None:
    with pytest.raises(UnknownRun):
        FileRuns(home).snapshot("../../etc")


def test_a_completed_run_whose_result_is_damaged_does_not_pass_for_an_empty_answer(home: StoreHome) -> None:
    done = make_status(state=RunState.COMPLETE)
    for result in (b"{", b"", None):
        root = store(home, 1, status=encode(done))
        (root / "result.json").unlink(missing_ok=True)
        if result is not None:
            (root / "result.json").write_bytes(result)
        with pytest.raises(Exception, match=r"result\.json") as caught:
            _ = Run(home, run_id(1)).output
        assert type(caught.value).__name__ == "RunFailed"


def test_reading_writes_nothing(home: StoreHome) -> None:
    store(home, 1, status=b"{")
    store(home, 2, result=encode(make_result(2)))
    before = {p: p.stat().st_mtime_ns for p in home.root.rglob("*")}
    list_runs(home, state=None, agent=None, name=None, limit=None)
    assert {p: p.stat().st_mtime_ns for p in home.root.rglob("*")} == before


def test_the_tail_of_a_log_is_text_whatever_is_in_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 9000 + b"\xff\xfe end\n")
    assert read_tail(log, 100).endswith("\ufffd\ufffd end")
    assert read_tail(tmp_path / "nothing") == ""
    os.mkfifo(tmp_path / "pipe")


def below(number: int, path: str, **more: object) -> TreeRow:
    fields = {"path": path, "run_id": run_id(number), "agent": "leaf", "label": "its task", "state": "running"}
    return TreeRow.model_validate(fields | more)


ASKED = OpenQuestion(question_id="q1", text="may it?", asked_at="2026-03-01T12:00:00Z")


@pytest.mark.parametrize("last", ["verdict", "result"])
def test_the_runs_below_one_that_did_not_see_their_ends_are_as_they_say_themselves(home: StoreHome, last: str) -> None:
    rows = (
        below(2, "mid", activity="delegate", waits=True),
        below(3, "mid/leaf", questions=(ASKED,)),
        below(4, "gone"),
        below(5, "done", state="complete"),
        below(6, "late"),
    )
    store(home, 1, status=encode(make_status(1, tree=rows)))
    seen = FileRuns(home).snapshot(run_id(1))
    assert seen.tree == rows, "while it lives its own word counts"
    store(home, 1, **{last: encode(make_verdict(1) if last == "verdict" else make_result(1, tree=rows))})
    store(home, 2, status=encode(make_status(2)), verdict=encode(make_verdict(2)))
    store(home, 3, result=encode(make_result(3, state="stopped", reason="stopped", actor="parent", error="Stopped.")))
    store(home, 6, status=encode(make_status(6, questions=(ASKED,))))
    ended = FileRuns(home).snapshot(run_id(1))
    assert [(row.path, row.state.value) for row in ended.tree] == [
        ("mid", "lost"),
        ("mid/leaf", "stopped"),
        ("gone", "lost"),
        ("done", "complete"),
        ("late", "running"),
    ]
    assert [row.label for row in ended.tree] == ["its task"] * 5
    assert ended.tree[1].error == "Stopped." and not ended.tree[0].waits
    assert [row.path for row in ended.tree if row.questions] == ["late"], "nobody asks but who lives"


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
@pytest.mark.parametrize(("number", "old"), [(20_000, True), (100, False)])
def test_what_was_read_is_not_gone_through_once_more_if_it_is_much(number: int, old: bool) -> None:
    gc.collect()
    with uncollected():
        assert not gc.isenabled()
        kept = [[one] for one in range(number)]
    assert gc.isenabled() and gc.get_freeze_count() == 0
    assert any(one is kept for one in gc.get_objects(generation=2)) is old


@pytest.mark.usefixtures("nothing_frozen")
def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    with uncollected():
        kept = [[one] for one in range(20_000)]
    assert before / 2 < gc.get_freeze_count() <= before and len(kept) == 20_000  # a few of them have died meanwhile
