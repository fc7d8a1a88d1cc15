"""Runners killed at random moments of their lives: every run stays listed, with one honest end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest
from support import alive, until

from subagents_nb import launch, runs
from subagents_nb.domain.states import RunState
from subagents_nb.store import FileRuns, StoreHome

pytestmark = pytest.mark.timeout(90)
ROUNDS = 16
SEED = 20260301


def test_runs_killed_at_any_moment_are_listed_and_end_once(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    rng = random.Random(SEED)
    print("seed", SEED)
    folder = Path(".subagents/scripts")
    folder.mkdir(parents=True)
    (folder / "pieces.json").write_text(json.dumps([{"text": "piece "}, {"sleep": 0.005}] * 12))
    ids, ends = [], []
    for round_ in range(ROUNDS):
        run = launch("scout", "x", model="scripted:pieces")
        ids.append(run.id)
        status = FileRuns(shared_home).snapshot(run.id).status
        if round_ % 4:
            threading.Event().wait(rng.uniform(0, 0.3))
        if status is not None and status.runner is not None:
            with contextlib.suppress(ProcessLookupError):
                if alive(status.runner.pid, status.runner.start_ticks):
                    os.kill(status.runner.pid, signal.SIGKILL)
        assert run.wait(10), f"round {round_}: no end"
        ends.append(run.state)
    until(lambda: all(proof_is_written(shared_home, one) for one in ids), 10, what="the proofs of all ends")
    for one in ids:
        snapshot = FileRuns(shared_home).snapshot(one, whole=True)
        assert snapshot.damage == ()
        assert (snapshot.result is None) != (snapshot.verdict is None), "no last word, or two"
        assert snapshot.state in (RunState.COMPLETE, RunState.LOST, RunState.FAILED)
        lines = shared_home.run(one).events.read_bytes().splitlines(keepends=True) if began(shared_home, one) else []
        whole = [json.loads(line)["seq"] for line in lines if line.endswith(b"\n")]
        assert whole == list(range(1, len(whole) + 1))
    assert set(ids) <= {run.id for run in runs()}
    assert RunState.COMPLETE in ends and {RunState.LOST, RunState.FAILED} & set(ends), f"only {set(ends)}"


def proof_is_written(home: StoreHome, run_id: str) -> bool:
    process = FileRuns(home).snapshot(run_id, whole=True).process
    return process is not None and process.state != "pending"


def began(home: StoreHome, run_id: str) -> bool:
    return home.run(run_id).events.exists()
