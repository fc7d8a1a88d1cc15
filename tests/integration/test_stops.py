"""What a stop ends and what it does not: one step, a run that waits for a place, one that is paused; with processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from support import script, until

from subagents_nb import Run, launch, parallel, runs, step
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchError, LaunchRefused, RequestError, RunStopped
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.lock import probe
from subagents_nb.store.kept.collector import collect
from subagents_nb.supervisor.ends.kill_escalation import OVERDUE_S
from subagents_nb.supervisor.warm.reconcile import reconcile

pytestmark = pytest.mark.timeout(60)


def waits() -> str:
    return script("waits", {"text": "a "}, {"await_steer": True})


def at_work(run: Run) -> bool:
    return run.state == "running" and all(one.state == "running" for one in run.steps)


def pair(first: str, second: str) -> Run:
    group = parallel(step("scout", "a", model=first), step("scout", "b", model=second), on_failure="continue")
    return launch(group)


def runner_of(run: Run) -> int:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    assert process is not None
    assert process.pid is not None
    return process.pid


def test_stopping_one_step_of_a_chain_that_waits_for_a_place_stops_that_step_alone(
    shared_home: StoreHome, spawn: str
) -> None:
    settings = Path.home() / ".subagents"
    settings.mkdir()
    (settings / "settings.toml").write_text("max_live_runs = 1\n")
    first = launch(task="x", model=waits())
    queued = pair("scripted:hang", "scripted:echo")
    single = launch(task="not me", model="scripted:echo")
    assert queued.state is single.state is RunState.QUEUED
    queued.steps[0].stop()
    single.steps[0].stop("the only one")
    until(lambda: single.status.ended, 10, what="the end of the run whose only step was stopped")
    assert single.error == "Stopped before it began: the only one."
    assert queued.state is RunState.QUEUED
    first.stop()
    assert queued.wait(20)
    assert (queued.state, [str(one.state) for one in queued.steps]) == (RunState.PARTIAL, ["stopped", "complete"])


def test_a_runner_killed_from_outside_is_lost_though_one_of_its_steps_was_stopped(
    shared_home: StoreHome, spawn: str
) -> None:
    run = pair(waits(), waits())
    until(lambda: at_work(run), 20, what="both steps at work")
    run.steps[0].stop()
    until(lambda: run.steps[0].state == "stopped", 10, what="the end of the one step")
    os.kill(runner_of(run), signal.SIGKILL)
    assert run.wait(10)
    verdict = FileRuns(run.home).snapshot(run.id).verdict
    assert verdict is not None
    assert (verdict.state, verdict.reason, verdict.actor) == (RunState.LOST, "signal", "outside")


def paused(name: str | None = None) -> Run:
    run = launch(task="tick", model="scripted:slow", name=name)
    until(lambda: run.status.tail, 20, what="the first words")
    run.interrupt("lunch")
    assert run.wait(10)
    assert run.state is RunState.PAUSED
    return run


def test_a_paused_run_can_be_stopped_and_then_collected(shared_home: StoreHome, spawn: str) -> None:
    run = paused()
    with pytest.raises(RequestError, match="paused already; there is nothing to stop"):
        run.stop(step=3)
    until(lambda: probe(run.home.run(run.id).lock) == "free", 10, what="the end of its process")
    assert not would_go(shared_home, run)
    run.stop("not after all")
    assert (run.state, run.status.reason) == (RunState.STOPPED, "stopped")
    assert run.error == "Stopped on request from python while it was paused: not after all."
    with pytest.raises(RunStopped, match="not after all"):
        _ = run.output
    assert run.stop() is False
    with pytest.raises(LaunchRefused, match="was stopped"):
        run.resume("go on")
    assert {one.id: one.state for one in runs()}[run.id] is RunState.STOPPED
    assert reconcile(shared_home, [run.id]) == []
    # What is in doubt for a moment is kept: a clock that is set back makes a run younger than a moment ago.
    until(lambda: would_go(shared_home, run), 10, what="a run that may be deleted")


def would_go(home: StoreHome, run: Run) -> bool:
    """Say whether the run would be deleted if it were old enough."""
    return run.id in [one.run_id for one in collect(home, keep_s=0, dry_run=True).deleted]


def test_who_holds_a_session_is_named_to_whoever_wants_it_too(shared_home: StoreHome, spawn: str) -> None:
    source = paused()
    second = source.resume("go on")
    until(lambda: second.state is RunState.RUNNING, 20, what="the run that goes on")
    with pytest.raises(LaunchError, match=f"another run, {second.id}: steer that one, or stop it"):
        source.resume("me too")
    second.stop()
    assert second.wait(10)


def test_a_runner_that_can_not_keep_its_deadline_is_ended_from_outside(shared_home: StoreHome, spawn: str) -> None:
    run = launch(task="tick", model="scripted:slow", timeout="1h")
    due = shared_home.run(run.id).due
    until(lambda: run.state is RunState.RUNNING, 20, what="the beginning", pause=0.002)  # it may be frozen from now on
    assert 3500 < due.stat().st_mtime_ns / 1e9 - time.monotonic() < 3601
    os.kill(runner_of(run), signal.SIGSTOP)  # it hears nothing and can't look at a clock
    long_ago = int((time.monotonic() - OVERDUE_S - 1) * 1e9)
    os.utime(due, ns=(0, long_ago))
    assert run.wait(20)
    assert (run.state, run.status.reason) == (RunState.FAILED, "timeout")
    assert "deadline" in (run.error or "") and "memory" not in (run.error or "")


def test_a_frozen_runner_whose_watcher_died_is_ended_when_somebody_looks(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "cold")
    run = launch(task="tick", model="scripted:slow", timeout="1h")
    until(lambda: run.state is RunState.RUNNING, 20, what="the beginning")
    record = FileRuns(store_home).snapshot(run.id, whole=True).process
    assert record is not None and record.observer is not None
    os.kill(runner_of(run), signal.SIGSTOP)
    os.kill(record.observer.pid, signal.SIGKILL)
    os.utime(store_home.run(run.id).due, ns=(0, int((time.monotonic() - OVERDUE_S - 2) * 1e9)))
    assert run.wait(20), "a supervisor comes up for it"
    assert (run.state, run.status.reason) == (RunState.FAILED, "timeout")
