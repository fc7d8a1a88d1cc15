"""The launcher killed in each of its gaps: the run is absent or listed, has one process at most, and ends honestly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import LONG_AGO, event_lines
from support import CHILDREN, processes_of, until

from subagents_nb import Run, launch, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.waiting.capacity import slots_taken

Case = Callable[..., None]
WARM, COLD = times(2, 25), times(1, 3)
GAPS = ["placed", "stored", "asked", "started", "status", "proceed", "random", "abandon"]


def kill_launchers(point: str, times: int) -> list[str]:
    command = [sys.executable, str(CHILDREN / "launcher.py"), point, "scripted:echo", str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def backdate(home: StoreHome, run_id: str) -> None:
    """Make a plan old enough that its launcher can't be at work on it any more."""
    path = home.run(run_id).plan
    path.write_text(json.dumps({**json.loads(path.read_text()), "created_at": LONG_AGO}))


def expect_honest(home: StoreHome, run_id: str, point: str) -> None:
    run = Run(home, run_id)
    if run_id not in FileRuns(home).ids():
        assert point in ("placed", "random"), "a stored run has vanished"
        return
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    assert snapshot.plan is not None or point == "random"
    if snapshot.plan is None:
        return  # killed while it made the directory: a row that says so
    if snapshot.status is None:
        assert point != "proceed"
        assert point != "stored" or run.state is RunState.QUEUED
        backdate(home, run_id)
    until(lambda: run.status.ended, 15, what=f"the end of {run_id}")
    assert run_id in [one.id for one in runs()]
    if point == "proceed":
        assert run.state is RunState.COMPLETE, run.error
    elif point != "random":
        assert (run.state, run.status.reason) == (RunState.FAILED, "startup")
        assert not home.run(run_id).result.exists()
    whole = FileRuns(home).snapshot(run_id, whole=True)
    assert (whole.result is None) != (whole.verdict is None)
    if whole.process is not None and whole.status is not None and whole.status.runner is not None:
        assert whole.process.pid == whole.status.runner.pid, "two processes for one run"
    starts = [line for line in event_lines(home, run_id) if line["type"] == "run-started"]
    assert len(starts) == (run.state is RunState.COMPLETE)


@pytest.mark.row(3, cases=WARM)
@pytest.mark.parametrize("point", GAPS)
def test_a_launcher_killed_at_a_point_warm(
    shared_home: StoreHome, point: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    check(shared_home, point, WARM, case)


@pytest.mark.row(3, cases=COLD)
@pytest.mark.parametrize("point", [gap for gap in GAPS if gap != "asked"])
def test_a_launcher_killed_at_a_point_cold(shared_home: StoreHome, point: str, case: Case) -> None:
    check(shared_home, point, COLD, case)


def check(home: StoreHome, point: str, times: int, case: Case) -> None:
    ids = kill_launchers(point, times)
    assert len(set(ids)) == len(ids) == times or point == "random"
    for run_id in ids:
        expect_honest(home, run_id, point)
    until(lambda: not processes_of(home), 15, what="the end of the last process")
    assert slots_taken(home) == 0
    case(times)
