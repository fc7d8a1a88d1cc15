"""Hundreds of launches by two processes at once, eight live at most: all distinct, all ended, nothing held on to."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import settings
from support import CHILDREN, until

from subagents_nb import launch, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome
from subagents_nb.store.waiting.capacity import slots_taken

CAP, EACH = 8, times(20, 100)


@pytest.mark.row(12, cases=2 * EACH)
@pytest.mark.timeout(180)
def test_many_launches_by_two_processes(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, case: Callable[..., None]
) -> None:
    settings(live=CAP)
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    over, taken = threading.Event(), []

    def sample() -> None:
        while not over.wait(0.01):
            taken.append(slots_taken(shared_home))

    sampler = threading.Thread(target=sample)
    sampler.start()
    began = time.monotonic()
    command = [sys.executable, str(CHILDREN / "many.py"), str(EACH), "10"]
    try:
        peers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        said = [json.loads(peer.communicate(timeout=150)[0]) for peer in peers]
    finally:
        over.set()
        sampler.join()
    took = time.monotonic() - began
    print(f"{2 * EACH} launches in {took:.1f} s; at most {max(taken)} live in {len(taken)} looks")
    ids = [run_id for one in said for run_id, _ in one["found"]]
    assert len(set(ids)) == 2 * EACH
    assert [text for one in said for _, text in one["found"]] == [f"number {n}" for n in range(EACH)] * 2
    assert {run.state for run in runs() if run.id in set(ids)} == {RunState.COMPLETE}
    assert took < 120
    assert max(taken) <= CAP, "more were live than may be"
    assert max(taken) >= CAP // 2, "the cap was never tried"
    for one in said:
        (descriptors, threads), (descriptors_after, threads_after) = one["before"], one["after"]
        assert abs(descriptors_after - descriptors) <= 3, one["kinds"]
        assert abs(threads_after - threads) <= 1, one["before"] + one["after"]
    until(lambda: slots_taken(shared_home) == 0, 5)
    case(2 * EACH)
