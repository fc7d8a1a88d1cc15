"""One store, real runs, and several readers and judges at once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from crash.counting import SOAK
from support import until

from subagents_nb import launch, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome

pytestmark = pytest.mark.timeout(60)

READER = """
import sys, time, subagents_nb
from subagents_nb.store import FileRuns, open_home
reader, run_id, last, reads = FileRuns(open_home()), sys.argv[1], 0, 0
end = time.monotonic() + 20
while time.monotonic() < end:
    snapshot = reader.snapshot(run_id)
    assert not snapshot.damage, snapshot.damage
    reads += 1
    if reads == 201:
        print("has read", flush=True)
    if snapshot.ended:
        break
    if snapshot.status is not None:
        assert snapshot.status.seq >= last, "went back"
        last = snapshot.status.seq
print(snapshot.state, reads)
"""


def test_two_readers_beside_a_writing_runner_see_nothing_torn_and_nothing_older(store_home: StoreHome) -> None:
    run = launch("scout", "x", model="scripted:slow")
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, run.id], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    until(lambda: "tick 20" in run.status.tail, 20)
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "has read\n"
    run.stop()
    for reader in readers:
        said = reader.communicate(timeout=30)[0].split()
        assert said[0] == "stopped" and int(said[1]) > 200


SWEEPER = """
import sys, subagents_nb
from subagents_nb.store import open_home
from subagents_nb.supervisor.warm.reconcile import reconcile
home = open_home()
sys.stdin.readline()
print(sum(len(reconcile(home, [run_id])) for run_id in sys.argv[1:]))
"""


def test_of_two_judges_of_a_dead_run_one_writes_the_verdict(store_home: StoreHome) -> None:
    ids = []
    for _ in range(3):
        run = launch("scout", "x", model="scripted:hang")
        process = FileRuns(store_home).snapshot(run.id, whole=True).process
        until(lambda: run.state is RunState.RUNNING, 15)  # noqa: B023
        process = until(lambda: FileRuns(store_home).snapshot(run.id, whole=True).process, 10)  # noqa: B023
        assert process is not None and process.observer_pid and process.pid
        os.kill(process.observer_pid, signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        ids.append(run.id)
    judges = [
        subprocess.Popen(
            [sys.executable, "-c", SWEEPER, *ids], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    given = sum(int(judge.communicate("go\n", timeout=30)[0]) for judge in judges)
    assert given == 3
    assert {str(run.state) for run in runs()} == {"lost"}


@pytest.mark.row(11, cases=1)
@pytest.mark.parametrize("many", [1_000, 10_000] if SOAK else [1_000])
def test_a_list_of_many_runs_costs_little_more_than_its_files_and_holds_the_unreadable_ones(
    store_home: StoreHome, many: int, case: Callable[..., None]
) -> None:
    """By the processor's time, beside plain reading and parsing: a busy or slow machine is no fault of the list."""
    from support import make_result, run_id

    from subagents_nb.store.files.codec import encode

    for number in range(1, many + 1):
        root = store_home.runs / run_id(number)
        root.mkdir(mode=0o700)
        data = encode(make_result(number))
        (root / "result.json").write_bytes(data[: len(data) // 2] if number * 20 % many == 0 else data)
    ratios = []
    for _ in range(4):
        began = time.process_time()
        listed = runs()
        took = time.process_time() - began
        assert len(listed) == many
        assert sum(snapshot.state is None for snapshot in listed.snapshots) == 20
        began = time.process_time()
        for path in store_home.runs.glob("*/result.json"):
            with contextlib.suppress(ValueError):
                json.loads(path.read_bytes())
        ratios.append(took / (time.process_time() - began))
    print(f"{many} runs: {min(ratios):.1f} times plain reading")
    assert min(ratios) < 6, ratios
    case()
