"""What is asked of a root reaches all below it, and what is below does not outlive it: stop, pause, drain, deadline."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from crash.counting import SOAK, times
from support import processes_of, until
from trees import agent, at_work, below, rows, to

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(sys.platform != "linux", reason="a supervisor's sockets")]
LEAVES = ("mid/leaf", "mid-2/leaf")


def team(*leaf: object, lead: object = None) -> None:
    """Write a lead that has two others work, each of whom has one work."""
    agent("lead", to("mid", "x", "y"), agents="mid")
    agent("mid", to("leaf", "a"), {"text": "!"}, agents="leaf")
    agent("leaf", *(leaf or ({"text": "at it"}, {"sleep": 600})))  # type: ignore[arg-type]


def actors(runs: list[Run]) -> set[str | None]:
    return {getattr(run.status.terminal_record, "actor", None) for run in runs}


def test_a_stop_of_the_root_reaches_every_level_and_none_outlives_it(shared_home: StoreHome) -> None:
    team()
    took = []
    for _ in range(times(1, 20)):
        run = launch("lead", "go")
        children = at_work(run, *LEAVES)
        asked = time.monotonic()
        run.stop("enough")
        until(lambda: not processes_of(shared_home), 2, what="no process of the tree")
        took.append(time.monotonic() - asked)
        assert run.wait(5) and run.state is RunState.STOPPED
        assert [child.state for child in children] == [RunState.STOPPED] * 4, "they are over before their root is"
        assert actors(children) == {"parent"}
    if SOAK:
        print(f"stop of a tree of five: {sorted(took)}")


def test_a_pause_reaches_every_level_and_the_root_goes_on(shared_home: StoreHome) -> None:
    team({"text": "half"}, {"sleep": 600})
    run = launch("lead", "go")
    children = at_work(run, *LEAVES)
    run.interrupt("lunch")
    assert run.wait(20) and run.state is RunState.PAUSED
    assert [child.state for child in children] == [RunState.PAUSED] * 4
    assert actors(children) == {"parent"}
    until(lambda: not processes_of(shared_home), 5, what="no process of the tree")
    agent("lead", {"text": "went on"}, agents="mid")
    assert run.resume("go on").result(60) == "went on"


def test_a_drain_lets_end_what_is_at_work_and_nothing_new_begins(shared_home: StoreHome) -> None:
    agent("lead", to("mid", "x"), to("mid", "y"), agents="mid")
    agent("mid", to("leaf", "a"), to("leaf", "b"), agents="leaf")
    agent("leaf", {"ask": "Go?"})
    run = launch("lead", "go")
    until(lambda: run.questions, 60, what="a leaf at work")
    run.drain()
    until(
        lambda: all((child.status.status or run.status.status).draining for child in below(run)), 10, what="all heard"
    )
    run.answer("yes")
    refused = "this run is ending, so it starts nothing new"
    assert run.result(30) == f"yes{refused}{refused}"
    assert rows(run) == {"mid": RunState.COMPLETE, "mid/leaf": RunState.COMPLETE}


def test_a_deadline_of_the_root_ends_all_levels(shared_home: StoreHome) -> None:
    team()
    run = launch("lead", "go", timeout=2.5)
    assert run.wait(30) and (run.state, run.status.reason) == (RunState.FAILED, "timeout")
    until(lambda: not processes_of(shared_home), 5, what="no process of the tree")
    assert rows(run) and all(child.status.ended for child in below(run))
    assert not {RunState.COMPLETE, RunState.LOST} & set(rows(run).values())


def test_a_root_that_is_killed_has_its_children_stopped_by_the_supervisor(shared_home: StoreHome) -> None:
    team()
    run = launch("lead", "go")
    children = at_work(run, *LEAVES)
    process = FileRuns(shared_home).snapshot(run.id, whole=True).process
    assert process is not None and process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: not processes_of(shared_home), 5, what="no process of the tree")
    assert run.wait(10) and run.state is RunState.LOST
    assert [child.state for child in children] == [RunState.STOPPED] * 4
    assert set(rows(run).values()) == {RunState.STOPPED}, "its own word on them was an older one"
    assert actors(children) == {"parent"}


@pytest.mark.usefixtures("shared_home")
def test_whoever_waits_for_a_child_that_waits_for_the_person_uses_up_no_deadline() -> None:
    agent("lead", to("mid", "x"), agents="mid")
    agent("mid", to("leaf", "a"), agents="leaf")
    agent("leaf", {"ask": "Go?"})
    run = launch("lead", "go", timeout=60)
    until(lambda: run.questions, 60, what="the leaf's question")
    tree = [run, *below(run)]
    until(lambda: all(one.status.status and one.status.status.waits for one in tree), 20, what="all clocks to stand")
    before = [(one.status.elapsed_s, one.status.waited_s) for one in tree]
    until(lambda: all(one.status.waited_s > was + 0.5 for one, (_, was) in zip(tree, before, strict=True)), 20)
    assert all(one.status.elapsed_s - was < 0.2 for one, (was, _) in zip(tree, before, strict=True))
    run.answer("yes")
    assert run.result(30) == "yes"
