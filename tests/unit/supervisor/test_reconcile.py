"""Which runs get a verdict from a sweep, and which are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id

from subagents_nb.domain.runs.records import Identity
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import hold, probe
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.warm.reconcile import reconcile


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def dead() -> Identity:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return identify(process.pid, "f" * 32)


def a_run(home: StoreHome, *, created_at: str | None = None) -> RunWriter:
    return create_run(home, make_plan(created_at=created_at or utc_now()), make_recovery())


def swept(home: StoreHome) -> RunState | None:
    reconcile(home, [run_id()])
    return FileRuns(home).snapshot(run_id()).state


def test_a_run_whose_process_is_gone_gets_one_verdict(home: StoreHome) -> None:
    writer = a_run(home)
    writer.status(make_status(runner=dead()), milestone=False)
    assert reconcile(home, [run_id()]) == [run_id()]
    assert reconcile(home, [run_id()]) == []
    verdict = FileRuns(home).snapshot(run_id(), whole=True).verdict
    assert verdict is not None
    assert (verdict.state, verdict.judged_by, verdict.tail) == ("lost", "sweep", "working")


def test_a_run_that_never_began_failed_and_was_not_lost(home: StoreHome) -> None:
    a_run(home).status(make_status(state=RunState.QUEUED, runner=dead()), milestone=False)
    assert swept(home) is RunState.FAILED


def test_the_living_and_the_unknown_are_left_alone(home: StoreHome) -> None:
    writer = a_run(home)
    writer.status(make_status(runner=identify(os.getpid(), "f" * 32)), milestone=False)
    assert swept(home) is RunState.RUNNING
    elsewhere = dead().model_copy(update={"host": "another machine"})
    writer.status(make_status(runner=elsewhere), milestone=False)
    assert swept(home) is RunState.RUNNING


def test_a_held_lock_is_believed_before_any_pid(home: StoreHome) -> None:
    writer = a_run(home)
    writer.status(make_status(runner=dead()), milestone=False)
    handle = hold(writer.paths.lock)
    assert swept(home) is RunState.RUNNING
    os.close(handle)
    assert swept(home) is RunState.LOST


def test_a_plan_without_a_status_is_young_for_a_minute_and_then_nobodys(home: StoreHome) -> None:
    a_run(home)
    assert swept(home) is RunState.QUEUED


@pytest.mark.parametrize("lock", [True, False], ids=["lock left", "no lock"])
def test_a_plan_whose_launcher_and_runner_died_in_between_does_not_wait_for_ever(home: StoreHome, lock: bool) -> None:
    writer = a_run(home, created_at="2026-01-01T00:00:00.000Z")
    if lock:
        writer.paths.lock.touch(mode=0o600)
    assert swept(home) is RunState.FAILED


LAUNCHER = """
import sys
from pathlib import Path
from support import make_plan, make_recovery
from subagents_nb.store import create_run, open_home
writer = create_run(open_home(Path(sys.argv[1])), make_plan(created_at=sys.argv[2]), make_recovery(), launching=True)
print("stored", flush=True)
sys.stdin.read()
writer.launched()
"""


@pytest.mark.parametrize("created_at", ["2026-01-01T00:00:00.000Z", ""], ids=["an hour ago", "now"])
def test_a_launcher_that_sleeps_is_waited_for_and_one_that_died_is_not(home: StoreHome, created_at: str) -> None:
    command = [sys.executable, "-c", LAUNCHER, str(home.root), created_at or utc_now()]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as launcher:
        assert launcher.stdout is not None and launcher.stdout.readline() == b"stored\n"
        launcher.send_signal(signal.SIGSTOP)
        assert swept(home) is RunState.QUEUED
        launcher.kill()
        launcher.wait(10)
        assert swept(home) is RunState.FAILED
    verdict = FileRuns(home).snapshot(run_id(), whole=True).verdict
    assert verdict is not None and verdict.reason == "startup"


def test_a_launch_that_has_a_status_leaves_no_lock_behind(home: StoreHome) -> None:
    writer = create_run(home, make_plan(created_at=utc_now()), make_recovery(), launching=True)
    assert probe(writer.paths.launching) == "held"
    writer.status(make_status(state=RunState.QUEUED, runner=identify(os.getpid(), "f" * 32)), milestone=True)
    writer.launched()
    writer.launched()
    assert not writer.paths.launching.exists()
    assert swept(home) is RunState.QUEUED


def test_a_clock_that_was_set_back_judges_nobody(home: StoreHome) -> None:
    a_run(home, created_at="2099-01-01T00:00:00.000Z")
    assert swept(home) is RunState.QUEUED


def test_a_result_beside_a_dead_process_is_the_last_word(home: StoreHome) -> None:
    writer = a_run(home)
    writer.status(make_status(runner=dead()), milestone=False)
    writer.result(make_result())
    assert swept(home) is RunState.COMPLETE
    assert not writer.paths.verdict.exists()


def test_a_run_whose_status_cannot_be_read_is_not_said_to_have_never_begun(home: StoreHome) -> None:
    writer = a_run(home, created_at="2026-01-01T00:00:00.000Z")
    writer.paths.status.write_bytes(b"{")
    assert swept(home) is None
    assert not writer.paths.verdict.exists()


def test_a_run_that_is_gone_or_was_never_there_is_passed_over(home: StoreHome) -> None:
    assert reconcile(home, [run_id(7)]) == []
