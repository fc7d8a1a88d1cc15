"""The wall clock jumps while runs work: none is lost, no length of time is negative, the order is kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import event_lines
from support import CHILDREN

from subagents_nb import runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store import FileRuns, StoreHome

TIMES = times(2, 20)
JUMPS = ["1", "-1", "3600", "-3600", "31536000", "-31536000", "epoch", "zone", "summer", "winter"]


@pytest.mark.row(18, cases=TIMES * len(JUMPS))
def test_a_clock_that_jumps_while_a_run_works(store_home: StoreHome, case: Callable[..., None]) -> None:
    command = [sys.executable, str(CHILDREN / "skewed.py")]
    peers = [
        subprocess.Popen([*command, jump, str(TIMES)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for jump in JUMPS
    ]
    ids = []
    for jump, peer in zip(JUMPS, peers, strict=True):
        said, complained = peer.communicate(timeout=100)
        assert peer.returncode == 0, f"{jump}: {complained}"
        ids += said.split()
    assert len(set(ids)) == TIMES * len(JUMPS)
    for run_id in ids:
        snapshot = FileRuns(store_home).snapshot(run_id, whole=True)
        assert (snapshot.state, snapshot.text, snapshot.verdict) == (RunState.COMPLETE, "one two", None)
        assert snapshot.result is not None
        assert 0 <= snapshot.result.waited_s <= snapshot.result.elapsed_s < 20
        lines = event_lines(store_home, run_id)
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        elapsed = [line["s"] for line in lines]
        assert elapsed == sorted(elapsed) and elapsed[0] >= 0
        assert all(line["t"].endswith("Z") for line in lines)
        case()
    assert {run.id for run in runs()} == set(ids)


@pytest.mark.row(18, cases=TIMES)
def test_an_hour_asleep_is_an_hour_at_most(case: Callable[..., None]) -> None:
    for number in range(TIMES):
        now = [100.0]
        clock = WorkClock(lambda now=now: now[0])
        if number % 2:
            with clock.waiting():
                now[0] += 3600.0
            assert (clock.worked_s, clock.waited_s) == (0.0, 3600.0)
        else:
            now[0] += 3600.0
            assert (clock.worked_s, clock.waited_s) == (3600.0, 0.0)
        case()
