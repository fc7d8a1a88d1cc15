"""A live run's directory, lock or whole store is deleted: it ends, the list says so, and nothing is made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crash.counting import times
from support import alive, ask_host, delete, until

from subagents_nb import Run, launch, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome, open_home

Case = Callable[..., None]
TIMES = times(1, 3)


def live_run() -> tuple[Run, int]:
    run = launch(task="x", model="scripted:slow")
    until(lambda: run.status.tail, 20, what="the first words")
    status = FileRuns(run.home).snapshot(run.id).status
    assert status is not None and status.runner is not None
    return run, status.runner.pid


@pytest.mark.row(21, cases=TIMES)
def test_a_run_directory_that_is_deleted(spawn: str, case: Case) -> None:
    for _ in range(TIMES):
        run, pid = live_run()
        delete(run.home.run(run.id).root)
        until(lambda pid=pid: not alive(pid), 6, what="the end of a run without a directory")
        assert run.wait(5)
        assert run.id not in [one.id for one in runs()]
        assert "gone" in str(Run(run.home, run.id).error)
        assert not run.home.run(run.id).root.exists()
        case()


@pytest.mark.row(21, cases=TIMES)
def test_a_lock_that_is_deleted(spawn: str, case: Case) -> None:
    for _ in range(TIMES):
        run, pid = live_run()
        run.home.run(run.id).lock.unlink()
        until(lambda pid=pid: not alive(pid), 6, what="the end of a run without a lock")
        assert run.wait(5)
        snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
        assert (snapshot.state, snapshot.reason, snapshot.verdict) == (RunState.STOPPED, "vanished", None)
        case()


@pytest.mark.row(21, cases=1)
@pytest.mark.parametrize("mode", ["warm", "cold"])
def test_a_whole_store_that_is_deleted(
    store_home: StoreHome, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    doomed = open_home(tmp_path / "doomed")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(doomed.root))
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", mode)
    begun = [live_run() for _ in range(3)]
    observer = FileRuns(doomed).snapshot(begun[0][0].id, whole=True).process.observer_pid  # type: ignore[union-attr]
    delete(doomed.root)
    until(lambda: not any(alive(pid) for _, pid in begun), 6, what="the end of runs without a store")
    until(lambda: not alive(observer), 15, what="the end of whoever watched them")
    assert not doomed.root.exists()
    assert list(runs()) == []
    for run, _ in begun:
        assert "gone" in str(Run(doomed, run.id).error)
    again = launch(task="a store is made anew by a launch", model="scripted:echo")
    assert again.result(60)
    assert [one.id for one in runs()] == [again.id]
    for path in doomed.supervisor.glob("*.sock"):
        ask_host(path, {"op": "leave"})
    case()
