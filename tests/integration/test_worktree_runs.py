"""Whole runs in worktrees: what a launch is refused for, and what becomes of an agent's work however its run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repositories import begin_repository, git, hook_of, nothing_left
from support import CHILDREN, until

from subagents_nb import chain, launch, parallel, step
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching.results import worktree_handoff as handoff
from subagents_nb.store import FileRuns, StoreHome

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def repo(shared_home: StoreHome) -> Path:
    """A repository with a few files; it is the current directory."""
    del shared_home
    return begin_repository()


def refused(**options: Any) -> str:
    with pytest.raises(LaunchRefused) as caught:
        launch("scout", "look", model="scripted:echo", **options)
    return " | ".join(caught.value.reasons)


def test_a_launch_is_refused_with_what_speaks_against_a_tree(shared_home: StoreHome, repo: Path) -> None:
    for n in range(7):
        (repo / f"dirt {n}").touch()
    (repo / "a.txt").write_text("changed\n")
    said = refused(worktree=True)
    assert "a.txt, dirt 0, dirt 1, dirt 2, dirt 3 and 3 more" in said and "commit or stash" in said
    git("stash", "-u", "-q", cwd=repo)
    assert "no branch or tag 'nope'" in refused(worktree={"base_ref": "nope"})
    assert "revision expressions" in refused(worktree={"base_ref": "HEAD~1"})
    assert "commit id" in refused(worktree={"base_ref": git("rev-parse", "HEAD", cwd=repo)})
    assert "did you mean base_ref" in refused(worktree={"base_reff": "main"})
    assert "not executable" in refused(worktree={"setup_hook": "a.txt"})
    assert "leads out of the repository" in refused(worktree={"setup_hook": "../x"})
    assert "lies inside the checkout" in refused(worktree={"root": str(repo / "sub")})
    (repo / ".git" / "MERGE_HEAD").write_text(git("rev-parse", "HEAD", cwd=repo) + "\n")
    assert "a merge is going on" in refused(worktree=True)


def test_what_is_ours_or_jupyters_is_no_dirt(
    shared_home: StoreHome, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "sub" / ".subagents" / "agents").mkdir(parents=True)
    (repo / "sub" / ".subagents" / "agents" / "x.md").touch()
    (repo / ".ipynb_checkpoints").mkdir()
    (repo / ".ipynb_checkpoints" / "n.ipynb").touch()
    run = launch("scout", "look", model="scripted:echo", worktree=True)
    run.wait(30)
    assert run.state is RunState.COMPLETE, run.error


def test_a_place_without_a_repository_is_named(shared_home: StoreHome, tmp_path: Path) -> None:
    assert "is in no git repository" in refused(worktree=True)
    git("init", "-q", cwd=Path.cwd())
    assert "has no commit yet" in refused(worktree=True)
    os.environ["PATH"], path = str(tmp_path), os.environ["PATH"]
    try:
        assert "git is not installed" in refused(worktree=True)
    finally:
        os.environ["PATH"] = path


def test_a_run_works_in_a_tree_and_says_what_became_of_it(shared_home: StoreHome, repo: Path) -> None:
    git("tag", "v1", cwd=repo)
    run = launch("scout", "look", model="scripted:echo", worktree={"base_ref": "v1", "branch_prefix": "try/"})
    run.wait(30)
    assert run.state is RunState.COMPLETE, run.error
    record = run.status.result.steps[0].worktree if run.status.result else None
    assert record is not None and record.state == "removed" and record.branch.startswith("try/")
    assert nothing_left(repo) and handoff.diff(shared_home, run.id) == ""


def test_a_stopped_run_keeps_what_its_tree_holds(shared_home: StoreHome, repo: Path) -> None:
    run = launch("scout", "look", model="scripted:hang", worktree=True)
    tree = until(lambda: next(iter(repo.parent.glob("*-worktrees/*/a.txt")), None), what="the tree")
    until(lambda: handoff.remaining_worktrees(shared_home, run.id)[0].state == "ready", what="the hand-off")
    tree.write_text("half done\n")
    run.stop()
    run.wait(30)
    assert run.state is RunState.STOPPED
    assert "+half done" in handoff.diff(shared_home, run.id) and nothing_left(repo)


def test_a_group_works_in_trees_of_its_own(shared_home: StoreHome, repo: Path) -> None:
    steps = [step("scout", f"look {n}", model="scripted:echo") for n in range(3)]
    run = launch(parallel(*steps, worktree=True))
    run.wait(60)
    assert run.state is RunState.COMPLETE, run.error
    result = run.status.result
    assert result is not None and nothing_left(repo)
    assert [one.worktree.state if one.worktree else None for one in result.steps] == ["removed"] * 3


def test_the_chains_directory_is_the_tree_of_a_step_that_has_one(shared_home: StoreHome, repo: Path) -> None:
    run = launch(
        chain(step("worker", "in {chain_dir}.", worktree=True), step("worker", "in {chain_dir}.")),
        model="scripted:echo",
    )
    run.wait(60)
    result = run.status.result
    assert result is not None and result.steps[0].worktree is not None, run.error
    assert f"in {result.steps[0].worktree.path}." in result.steps[0].text
    assert f"in {repo}." in result.steps[1].text


@pytest.fixture
def told(shared_home: StoreHome) -> Iterator[str]:
    """A model that calls bash with what the task says behind `RUN: `."""
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        own = Path.home() / ".subagents"
        own.mkdir(exist_ok=True)
        url = f"http://127.0.0.1:{int(peer.stdout.readline())}/v1"
        (own / "settings.toml").write_text(f'[endpoints.told]\nbase_url = "{url}"\n')
        yield "told:m"
        peer.stdin.close()


def test_what_agents_did_side_by_side_is_taken_over_together(shared_home: StoreHome, repo: Path, told: str) -> None:
    commits = "git add -A; git -c user.name=A -c user.email=a@b commit -qm x"
    tasks = [f"RUN: echo {n} > made-{n}; {commits}" for n in range(3)]
    run = launch(parallel(*(step("worker", task, model=told) for task in tasks), worktree=True))
    run.wait(60)
    assert run.state is RunState.COMPLETE, run.error
    assert nothing_left(repo) and git("status", "--porcelain", cwd=repo) == ""
    assert handoff.apply(shared_home, run.id) == ("made-0", "made-1", "made-2")
    assert [(repo / f"made-{n}").read_text() for n in range(3)] == ["0\n", "1\n", "2\n"]


def test_a_runner_that_is_killed_while_a_tool_works_loses_nothing(
    shared_home: StoreHome, repo: Path, told: str
) -> None:
    run = launch("worker", "RUN: echo half > half-done; sleep 600", model=told, worktree=True)
    until(lambda: list(repo.parent.glob("*-worktrees/*/half-done")), 30, what="the file in the tree")
    status = FileRuns(shared_home).snapshot(run.id).status
    assert status is not None and status.runner is not None
    os.kill(status.runner.pid, signal.SIGKILL)
    run.wait(30)
    assert run.state is RunState.LOST
    assert "+half" in handoff.diff(shared_home, run.id) and nothing_left(repo)
    assert handoff.apply(shared_home, run.id) == ("half-done",)


def test_a_step_that_runs_out_of_time_keeps_what_it_did(shared_home: StoreHome, repo: Path, told: str) -> None:
    at_work = repo.parent / "half-done"
    task = f"RUN: echo half > half-done; touch {at_work}; sleep 600"
    run = launch("worker", task, model=told, worktree=True, timeout=600)
    until(at_work.exists, 30, what="half of the work")
    run.retune(timeout=run.status.elapsed_s + 4)
    run.wait(30)
    result = run.status.result
    assert result is not None and result.reason == "timeout"
    assert "+half" in handoff.diff(shared_home, run.id) and nothing_left(repo)


def test_no_step_of_a_group_begins_if_one_tree_can_not_be_made(shared_home: StoreHome, repo: Path, told: str) -> None:
    hook = hook_of(repo, "print('{}'); sys.exit(json.load(sys.stdin)['index'] == 2)")
    steps = [step("worker", f"RUN: touch {repo.parent}/began-{n}", model=told) for n in range(3)]
    run = launch(parallel(*steps, worktree={"setup_hook": hook}, on_failure="continue"))
    run.wait(60)
    result = run.status.result
    assert result is not None
    assert [one.reason for one in result.steps] == ["worktree"] * 3
    assert nothing_left(repo) and not list(repo.parent.glob("began-*"))
