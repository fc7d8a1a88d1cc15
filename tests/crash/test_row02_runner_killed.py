"""Runners killed at random moments, eight live at a time, each with processes of its own: nothing is lost but work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import event_lines
from support import alive, marked_processes, until

from subagents_nb import Run, launch, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.lock import probe
from subagents_nb.supervisor.warm.reconcile import reconcile

Case = Callable[..., None]
SEED = 20260301
POINTS, AT_ONCE = times(3, 250), 8
WATCHED = times(2, 8)
SPREAD_S = 0.6
# One grandchild in the run's group and one that has left it.
COMMAND = "RUN: echo begun; (setsid sleep 300 &) ; sleep 300"


def kill(pid: int | None, ticks: int | None = None) -> None:
    with contextlib.suppress(ProcessLookupError):
        if pid is not None and alive(pid, ticks):
            os.kill(pid, signal.SIGKILL)


def kill_runners(home: StoreHome, begun: list[Run], *, observers: bool = False) -> None:
    for run in begun:
        snapshot = FileRuns(home).snapshot(run.id, whole=True)
        assert snapshot.status is not None and snapshot.status.runner is not None
        if observers and snapshot.process is not None:
            kill(snapshot.process.observer_pid)
        kill(snapshot.status.runner.pid, snapshot.status.runner.start_ticks)


def expect_honest_ends(home: StoreHome, ids: list[str], ends: set[RunState | None]) -> None:
    """A watcher that lives judges at once, else a sweep does; the last process is gone in five seconds."""
    killed = time.monotonic()

    def judged() -> bool:
        reconcile(home, ids)
        return all(FileRuns(home).has_terminal_record(run_id) for run_id in ids)

    until(judged, 5, what="the ends", pause=0.05)
    for run_id in ids:
        snapshot = FileRuns(home).snapshot(run_id, whole=True)
        assert snapshot.damage == ()
        assert (snapshot.result is None) != (snapshot.verdict is None), "no last word, or two"
        ends.add(snapshot.state)
        lines = event_lines(home, run_id)
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        assert snapshot.status is not None
        begun = {line["call"] for line in lines if line["type"] == "tool-started"}
        assert {tool.call_id for tool in snapshot.status.steps[0].tools} <= begun, "the status shows what events lack"
    until(lambda: not marked_processes(ids), 5, what="the end of the last grandchild", pause=0.05)
    assert time.monotonic() - killed < 5.5


@pytest.mark.row(2, cases=POINTS * AT_ONCE)
@pytest.mark.timeout(1200)
def test_runs_killed_at_any_moment_are_listed_and_end_once(
    shared_home: StoreHome, told: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    rng = random.Random(SEED)
    print("seed", SEED)
    ids: list[str] = []
    ends: set[RunState | None] = set()
    tools = 0
    for point in range(POINTS):
        begun = [launch(task=COMMAND, model=told) for _ in range(AT_ONCE)]
        at = time.monotonic() + rng.uniform(0.0, SPREAD_S) * (point > 0)
        until(lambda at=at: time.monotonic() >= at, 5, pause=0.005)
        kill_runners(shared_home, begun)
        here = [run.id for run in begun]
        await_deaths(begun)
        expect_honest_ends(shared_home, here, ends)
        tools += sum(any(line["type"] == "tool-started" for line in event_lines(shared_home, one)) for one in here)
        ids += here
        case(AT_ONCE)
    assert set(ids) <= {run.id for run in runs()}
    print("ends", ends, "with a tool at work", tools)
    assert ends <= {RunState.LOST, RunState.FAILED} and RunState.LOST in ends
    assert tools > POINTS * AT_ONCE // 10, "the kills came too early to meet grandchildren"


@pytest.mark.row(2, cases=WATCHED)
@pytest.mark.timeout(60)
def test_runs_that_die_with_whoever_watched_them_leave_no_process_either(
    store_home: StoreHome, told: str, case: Case
) -> None:
    begun = [launch(task=COMMAND, model=told) for _ in range(WATCHED)]

    def all_are_there() -> bool:
        marked = Counter(marked_processes(run.id for run in begun).values())
        return all(marked[run.id] >= 4 for run in begun)

    until(all_are_there, 30, what="the grandchildren", pause=0.1)
    kill_runners(store_home, begun, observers=True)
    await_deaths(begun)
    ends: set[RunState | None] = set()
    expect_honest_ends(store_home, [run.id for run in begun], ends)
    assert ends == {RunState.LOST}
    for run in begun:
        proof = FileRuns(store_home).snapshot(run.id, whole=True).process
        assert proof is not None and (proof.state, proof.reason) == ("unknown", "stale-repair")
    case(WATCHED)


def await_deaths(begun: list[Run]) -> None:
    """Wait until the system has taken the runners apart: a zombie may have threads that still hold its lock."""
    until(lambda: all(probe(run.home.run(run.id).lock) != "held" for run in begun), 2, what="the deaths", pause=0.002)
    until(lambda: not any(alive(runner(run)) for run in begun), 2, what="the deaths", pause=0.002)


def runner(run: Run) -> int | None:
    status = FileRuns(run.home).snapshot(run.id).status
    return status.runner.pid if status is not None and status.runner is not None else None
