"""Floods of output: files stay small, the status stays young, and nobody's memory grows with them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from crash.counting import times
from crash.lives import a_plan, exit_code, fork, live
from support import script, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.following.watch import Watcher
from subagents_nb.runner.processes.stdio import CAP_BYTES, HEAD_BYTES
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.disk_usage import disk_use

Case = Callable[..., None]
MEGABYTES = times(20, 1000)
MB = 1024 * 1024
FLOODS = {
    "lines": "yes 'a line of text' | head -c {n}",
    "one-line": "head -c {n} /dev/zero | tr '\\0' x",
    "binary": "head -c {n} /dev/urandom",
}


def resident_mb(pid: int | None = None) -> float:
    return psutil.Process(pid).memory_info().rss / MB


@pytest.mark.row(20, cases=1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", FLOODS)
def test_a_tool_that_floods(store_home: StoreHome, told: str, kind: str, case: Case) -> None:
    command = FLOODS[kind].format(n=MEGABYTES * MB)
    watcher, ages, seen = Watcher(), list[float](), [time.monotonic()]

    def hear(_: Snapshot) -> None:
        seen.append(time.monotonic())

    run = launch(task=f"RUN: {command}; sleep 1; {command}", model=told)
    until(lambda: pid_of(run), 20)
    pid = pid_of(run)
    assert pid is not None
    until(lambda: run.status.tail or run.status.status.steps[0].tools, 20, what="the tool")  # type: ignore[union-attr]
    seen.append(time.monotonic())
    stop = watcher.follow(run.home, run.id, hear)
    own, most, at_first = resident_mb(), 0.0, resident_mb(pid)
    while not run.status.ended:
        try:
            most = max(most, resident_mb(pid) - at_first)
        except psutil.NoSuchProcess:
            break
        ages.append(time.monotonic() - seen[-1])
        threading.Event().wait(0.02)
    stop()
    watcher.close()
    assert run.wait(10)
    grown = resident_mb() - own
    print(f"{kind}: runner +{most:.0f} MB, kernel {grown:+.1f} MB, run {disk_use(run.home.run(run.id)) / MB:.1f} MB")
    assert run.state is RunState.COMPLETE, run.error
    assert most < 100
    assert grown < 10
    # A run whose tool works says every second that it lives; a flood does not delay that by another.
    assert max(ages) < 2.0
    for path in run.home.run(run.id).root.rglob("*"):
        assert path.stat().st_size < 6 * MB, path
    case()


def pid_of(run: Run) -> int | None:
    status = FileRuns(run.home).snapshot(run.id).status
    return status.runner.pid if status is not None and status.runner is not None else None


@pytest.mark.row(20, cases=2)
@pytest.mark.timeout(300)
def test_a_runner_that_floods_its_own_output(store_home: StoreHome, case: Case) -> None:
    plan = a_plan(
        1, model=script("long", {"text": "one "}, {"sleep": 1.0 + MEGABYTES * 0.06}, {"text": "two"}), timeout_s=600.0
    )
    paths = store_home.run(plan.run_id)

    def flood() -> None:
        while not paths.events.exists():
            threading.Event().wait(0.01)
        for number in (1, 2):
            os.write(number, b"HEAD" + b"x" * 60)
            for _ in range(MEGABYTES * 4):
                os.write(number, b"y" * (MB // 4))
                threading.Event().wait(0.005)
            os.write(number, b"TAIL\n")

    def work() -> int:
        output = os.open(store_home.root / "out", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.dup2(output, 1)
        threading.Thread(target=flood, daemon=True).start()
        return live(store_home, plan)

    pid = fork(work)
    largest = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        largest = max([largest, *(size(path) for path in (paths.err, store_home.root / "out"))])
        threading.Event().wait(0.01)
    assert exit_code(pid) == 0
    print(f"at most {largest / MB:.1f} MB")
    assert FileRuns(store_home).snapshot(plan.run_id).state is RunState.COMPLETE
    for path in (paths.err, store_home.root / "out"):
        assert size(path) < 2 * CAP_BYTES
        data = path.read_bytes()
        assert data.startswith(b"HEAD") and b"dropped" in data[HEAD_BYTES:]
        case()
    assert largest < 4 * CAP_BYTES


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
