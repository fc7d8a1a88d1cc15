"""A run in the middle of a tree killed at a random moment: what it started is stopped, and every end is honest."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from crash.counting import times
from support import alive, processes_of, until
from trees import agent, to

from subagents_nb import launch
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.tree.launches import children_of

Case = Callable[..., None]
POINTS = times(2, 25)
SEED = 20261130


def agents() -> None:
    agent("lead", to("mid", "x"), agents="mid")
    agent("mid", to("leaf", "a", "b"), agents="leaf")
    agent("leaf", {"text": "at it"}, {"sleep": 600})


def at_work(home: StoreHome, run_id: str) -> Snapshot:
    """Return the one run that a root delegated to, once it has a process."""

    def found() -> Snapshot | None:
        ids = children_of(home.run(run_id))
        seen = FileRuns(home).snapshot(ids[0], whole=True) if ids else None
        return seen if seen is not None and seen.process is not None and seen.process.pid is not None else None

    return until(found, 30, what="the middle run")


@pytest.mark.row(34, cases=POINTS)
@pytest.mark.timeout(600)
def test_a_middle_run_that_is_killed_leaves_no_orphan_and_its_parent_goes_on(
    shared_home: StoreHome, case: Case
) -> None:
    agents()
    chance = random.Random(SEED)
    for point in range(POINTS):
        root = launch("lead", f"point {point}")
        middle = at_work(shared_home, root.id)
        at = time.monotonic() + chance.uniform(0.0, 0.8)
        until(lambda at=at: time.monotonic() >= at, 5, pause=0.005)
        process = middle.process
        assert process is not None and process.pid is not None
        if alive(process.pid, process.start_ticks):
            os.kill(process.pid, signal.SIGKILL)
        assert root.wait(20), "the root hears that its child is gone"
        assert root.state is RunState.COMPLETE
        seen = FileRuns(shared_home).snapshot(middle.run_id, whole=True)
        assert seen.result is None and seen.state in (RunState.LOST, RunState.FAILED), "failed: it had not begun"
        assert f"mid ended as {seen.state}" in root.text
        for leaf in children_of(shared_home.run(middle.run_id)):
            ended = FileRuns(shared_home).snapshot(leaf, whole=True)
            assert ended.state is RunState.STOPPED, "it is over before its parent is"
            assert ended.terminal_record is not None and ended.terminal_record.actor == "parent"
        until(lambda: not processes_of(shared_home), 10, what="no process of the tree")
        shown = {row.path: row.state for row in FileRuns(shared_home).snapshot(root.id).tree}
        assert shown["mid"] == seen.state and all(state.ended for state in shown.values()), "nothing is shown at work"
        case()
