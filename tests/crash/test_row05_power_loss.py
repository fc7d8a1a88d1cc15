"""Power loss, by simulation: what was not on the device comes back empty, as zeros, cut, old or not at all.

No run is left without an end, none is a default, what was synced is what is read, and the list goes on.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.lives import LONG_AGO
from support import (
    make_candidate,
    make_identity,
    make_plan,
    make_process,
    make_recovery,
    make_request,
    make_result,
    make_status,
    make_verdict,
    run_id,
)

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.questions import Question
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.listing import list_runs
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.processes.identity import host_id
from subagents_nb.supervisor.warm.reconcile import reconcile

Case = Callable[..., None]
# Written without a sync while a run works, and what a power cut may leave of each.
UNSYNCED = ["status.json", "process.json", "recovery.json", "events.jsonl", ".reserve", "runner.err"]
FATES = ["empty", "zeros", "cut", "gone"]
# Synced before anybody is told of them. Some file systems lose even those; then they are unreadable, and nothing more.
SYNCED = ["plan.json", "result.json", "verdict.json", "control/stop-a-1.json", "questions/q1.json", "candidate.json"]


def befall(path: Path, fate: str) -> None:
    data = path.read_bytes()
    match fate:
        case "empty":
            path.write_bytes(b"")
        case "zeros":
            path.write_bytes(b"\0" * len(data))
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "gone":
            path.unlink()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at work, as its files stand at one moment."""
    home = open_home(tmp_path_factory.mktemp("model") / "store")
    writer = create_run(home, make_plan(created_at=LONG_AGO), make_recovery())
    writer.status(make_status(runner=make_identity(host=host_id(), boot_id="before the cut")), milestone=False)
    writer.process(make_process().model_copy(update={"state": "pending"}))
    writer.events.append({"seq": 1, "type": "run-started"}, keep=True)
    writer.reserve()
    for path in (writer.paths.lock, writer.paths.err):
        path.touch(0o600)
    writer.paths.err.write_text("something was said\n")
    return writer.paths.root


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def again(home: StoreHome, model: Path) -> RunWriter:
    paths = home.run(run_id())
    shutil.rmtree(paths.root, ignore_errors=True)
    shutil.copytree(model, paths.root)
    return RunWriter(paths)


def listed(home: StoreHome) -> RunState | None:
    (run,) = list_runs(home, state=None, agent=None, name=None, limit=None).snapshots
    return run.state


def fates() -> Iterator[tuple[str, ...]]:
    yield from itertools.product(["kept", *FATES], repeat=3)


@pytest.mark.row(5, cases=125)
def test_any_of_the_unsynced_documents_may_be_lost_and_the_run_is_judged(
    home: StoreHome, model: Path, case: Case
) -> None:
    for fate in fates():
        paths = again(home, model).paths
        for name, what in zip(UNSYNCED[:3], fate, strict=True):
            befall(paths.root / name, what)
        for name in UNSYNCED[3:]:
            befall(paths.root / name, fate[0])
        # Where only the plan says that there was a run, its files say truly that it never began.
        assert listed(home) is (RunState.FAILED if fate[0] == "gone" else RunState.LOST), fate
        case()


@pytest.mark.row(5, cases=4)
@pytest.mark.parametrize("name", SYNCED)
def test_a_synced_document_that_is_lost_all_the_same_is_unreadable_and_the_run_has_an_end(
    home: StoreHome, model: Path, name: str, case: Case
) -> None:
    for fate in FATES:
        writer = again(home, model)
        ended = name in ("result.json", "candidate.json")
        writer.status(make_status(runner=None), milestone=False)
        befall(writer.paths.status, "empty")
        writer.mail.request(make_request())
        writer.mail.question(Question(run_id=run_id(), question_id="q1", text="which?", asked_at=LONG_AGO))
        writer.exit_report(make_candidate())
        if ended:
            writer.result(make_result())
        if name == "verdict.json":
            writer.verdict(make_verdict())
        befall(writer.paths.root / name, fate)
        state = listed(home)
        if ended and name != "result.json":
            assert state is RunState.COMPLETE
        elif name == "verdict.json" and fate == "cut":
            assert state is None, "a verdict of which half is there is nobody's to replace"
        else:
            assert state in (RunState.LOST, RunState.STOPPED), (fate, state)
            assert FileRuns(home).snapshot(run_id()).ended
        case()


@pytest.mark.row(5, cases=1)
@pytest.mark.parametrize("fate", ["empty", "zeros"])
def test_a_verdict_that_came_back_empty_is_given_anew_and_the_old_one_kept(
    home: StoreHome, model: Path, fate: str, case: Case
) -> None:
    writer = again(home, model)
    befall(writer.paths.status, "empty")
    writer.verdict(make_verdict())
    befall(writer.paths.verdict, fate)
    assert reconcile(home, [run_id()]) == [run_id()]
    assert reconcile(home, [run_id()]) == []
    assert listed(home) is RunState.LOST
    assert writer.paths.verdict.with_suffix(".bad").exists()
    case()


@pytest.mark.row(5, cases=2)
@pytest.mark.parametrize("lock", ["held", "missing"])
def test_a_cut_status_alone_proves_no_death(home: StoreHome, model: Path, lock: str, case: Case) -> None:
    for fate in ("empty", "cut"):
        paths = again(home, model).paths
        befall(paths.status, fate)
        if lock == "held":
            hold(paths.lock)
        else:
            paths.lock.unlink()
        assert reconcile(home, [run_id()]) == []
        assert listed(home) is None
        case()


@pytest.mark.row(5, cases=1)
def test_what_else_was_in_the_store_is_untouched_by_it(home: StoreHome, model: Path, case: Case) -> None:
    paths = again(home, model).paths
    befall(paths.status, "zeros")
    kept = [path for path in paths.root.rglob("*") if path.is_file() and path != paths.process]
    before = {path: path.read_bytes() for path in kept}
    assert listed(home) is RunState.LOST
    after = {path: path.read_bytes() for path in before}
    assert after == before
    verdict = json.loads(paths.verdict.read_text())
    assert verdict["stderr_tail"] == "something was said"
    proof = read_document(paths.process, ProcessRecord, run_id())
    assert (proof.state, proof.reason) == ("unknown", "stale-repair")
    case()
