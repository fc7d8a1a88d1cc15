"""Runs that delegate to runs: a tree, with a real supervisor."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import processes_of, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(sys.platform != "linux", reason="a supervisor's sockets")]


def agent(name: str, *steps: dict[str, Any], agents: str = "", **more: str) -> None:
    """Write an agent whose model plays these steps."""
    scripts, files = Path(".subagents/scripts"), Path(".subagents/agents")
    for folder in (scripts, files):
        folder.mkdir(parents=True, exist_ok=True)
    (scripts / f"{name}.json").write_text(json.dumps(steps))
    said = {"name": name, "description": "d", "model": f"scripted:{name}", "tools": "read", "agents": agents, **more}
    (files / f"{name}.md").write_text(
        "---\n" + "".join(f"{key}: {value}\n" for key, value in said.items() if value) + "---\nWork.\n"
    )


def to(name: str, *tasks: str) -> dict[str, Any]:
    return {"delegate": [{"agent": name, "task": task} for task in tasks], "say": True}


def rows(run: Run) -> dict[str, RunState]:
    head = run.status.head
    return {} if head is None else {row.path: row.state for row in head.tree}


def test_a_tree_of_seven_runs_ends_with_one_place_and_its_answers_come_up(shared_home: StoreHome) -> None:
    agent("lead", to("mid", "x", "y", "z"), agents="mid")
    agent("mid", to("leaf", "a"), {"text": "!"}, agents="leaf")
    agent("leaf", {"text": "leaf"})
    run = launch("lead", "go", max_live=1)
    assert run.result(100) == "leaf!\nleaf!\nleaf!"
    tree = rows(run)
    assert set(tree) == {"mid", "mid-2", "mid-3", "mid/leaf", "mid-2/leaf", "mid-3/leaf"}
    assert set(tree.values()) == {RunState.COMPLETE}
    head = run.status.head
    assert head is not None
    leaf = Run(shared_home, next(row.run_id for row in head.tree if row.path == "mid/leaf"))
    plan = FileRuns(shared_home).snapshot(leaf.id, whole=True).plan
    assert leaf.output == "leaf" and plan is not None
    assert (plan.origin.root, plan.origin.level, plan.steps[0].task) == (run.id, 2, "a")
    again = launch("lead", "go", reuse="tracked")
    assert again.reused, again.reuse_note


def test_what_a_child_refuses_or_fails_at_is_told_to_its_parent(shared_home: StoreHome) -> None:
    agent("lead", to("broken", "x"), to("deploy", "x"), {"text": "went on"}, agents="broken")
    agent("broken", {"fail": {"reason": "model", "message": "It broke."}})
    run = launch("lead", "go")
    refused = "'deploy' is not among the agents that lead may delegate to (broken)"
    assert run.result(60) == f"broken ended as failed: It broke.{refused}went on"
    step = run.status.steps[0]
    assert [row.state for row in step.tools] == ["failed", "refused"]
    assert rows(run) == {"broken": RunState.FAILED}
    child = next(iter(FileRuns(shared_home).snapshot(run.id).head.tree))  # type: ignore[union-attr]
    assert child.error == "It broke."


def test_a_stop_of_the_root_reaches_every_level_and_none_outlives_it(shared_home: StoreHome) -> None:
    agent("lead", to("mid", "x", "y"), agents="mid")
    agent("mid", to("leaf", "a"), agents="leaf")
    agent("leaf", {"text": "at it"}, {"sleep": 600})
    run = launch("lead", "go")
    until(
        lambda: [s for p, s in rows(run).items() if "/" in p] == [RunState.RUNNING] * 2, 60, what="two leaves at work"
    )
    head = run.status.head
    assert head is not None
    children = [Run(shared_home, row.run_id) for row in head.tree]
    run.stop("enough")
    assert run.wait(20) and run.state is RunState.STOPPED
    assert [child.state for child in children] == [RunState.STOPPED] * 4, "they are over before their root is"
    assert {getattr(child.status.last_word, "actor", None) for child in children} == {"parent"}
    until(lambda: not processes_of(shared_home), 5, what="no process of the tree")
