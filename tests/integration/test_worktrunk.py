"""Worktrees made by worktrunk. A stand-in for its command follows its documentation; git is real."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_step

from subagents_nb import launch, preflight
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.plans.worktree import WorktreePlan, WorktreeRecord
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.launching.gathering.worktrunk_check import no_worktrunk
from subagents_nb.runner.workspace.worktrees import Worktrees
from subagents_nb.store import StoreHome, create_run
from subagents_nb.store.git.trees import recover
from subagents_nb.store.runs.handoff import read_handoff

pytestmark = pytest.mark.timeout(60)
TREE = {"worktree": {"provider": "worktrunk"}}
# `wt switch BRANCH --no-cd --format json`: makes the tree of a branch that is there, beside the repository.
STAND_IN = """
    import json, os, pathlib, subprocess, sys
    if sys.argv[1:] == ["switch", "--help"]:
        sys.exit(print("Usage: wt switch [OPTIONS] [BRANCH]  --no-cd  --format <FORMAT>"))
    assert len(sys.argv) == 6 and sys.argv[1] == "switch" and sys.argv[3:] == ["--no-cd", "--format", "json"], sys.argv
    branch, here = sys.argv[2], pathlib.Path.cwd()
    path = here.with_name(here.name + "." + branch.replace("/", "-"))
    def make(path=path, *more):
        subprocess.run(["git", "worktree", "add", "-q", *more, str(path), branch], check=True, stdout=sys.stderr)
    def say(**other):
        print(json.dumps({"action": "created", "branch": branch, "path": str(path), "created_branch": False} | other))
"""
WELL = """
    make()
    (path / ".env").write_text("made by a hook\\n")
    say()
"""


@pytest.fixture
def repo(store_home: StoreHome) -> Path:
    root = Path.cwd()
    for words in ("init -q -b main", "config user.name Ada", "config user.email ada@example.org"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    (root / "a.txt").write_text("one\n")
    for words in ("add -A", "commit -q -m begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def wt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str = WELL) -> None:
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "wt").write_text(f"#!{sys.executable}\n{textwrap.dedent(STAND_IN)}{textwrap.dedent(body)}")
    (folder / "wt").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def bench(home: StoreHome, repo: Path) -> tuple[Worktrees, StepPlan]:
    base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, check=True, capture_output=True, text=True).stdout
    tree = WorktreePlan(repo_root=str(repo), base_commit=base.strip(), provider="worktrunk")
    step = make_step(worktree=tree)
    create_run(home, make_plan(1, cwd=str(repo), steps=(step,)), make_recovery(1))
    return Worktrees(home.run(make_plan(1).run_id)), step


def left(repo: Path) -> str:
    said = subprocess.run(["git", "worktree", "list"], cwd=repo, check=True, capture_output=True, text=True).stdout
    branches = subprocess.run(["git", "branch"], cwd=repo, check=True, capture_output=True, text=True).stdout
    return "\n".join([*said.splitlines()[1:], *branches.replace("* main", "").split()])


def test_a_step_works_in_a_tree_that_worktrunk_made_and_leaves_its_patch(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wt(tmp_path, monkeypatch)
    run = launch("scout", "look", model="scripted:echo", wait=True, **TREE)
    (record,) = read_handoff(store_home.run(run.id)).worktrees
    assert run.state == "complete", run.error
    assert Path(record.path).name == f"{repo.name}.{record.branch.replace('/', '-')}" and record.provider == "worktrunk"
    assert record.state == "removed" and record.synthetic == (".env",) and not record.changes and not left(repo)


def test_what_its_hooks_make_is_no_work_and_all_else_is_in_the_patch(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wt(tmp_path, monkeypatch)
    trees, step = bench(store_home, repo)

    async def work() -> WorktreeRecord | None:
        cwd = await trees.prepare(step, label="")
        (cwd / "b.txt").write_text("two\n")
        return await trees.capture(step)

    record = asyncio.run(work())
    assert record is not None and record.state == "removed" and record.applies and not left(repo)
    assert [change.path for change in record.changes] == ["b.txt"]


def test_its_git_obeys_no_hook_and_no_monitor_that_lies_in_the_repository(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in's own git, told by nobody, obeys both; the branch's checkout is what the hook follows.
    wt(tmp_path, monkeypatch, "\n    subprocess.run(['git', 'status'], check=True, stdout=sys.stderr)" + WELL)
    acted = tmp_path / "acted"
    for planted in (repo / ".git/hooks/post-checkout", repo / ".git/monitor"):
        planted.parent.mkdir(exist_ok=True)
        planted.write_text(f"#!/bin/sh\necho {planted.name} >> '{acted}'\n")
        planted.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(repo / ".git/monitor")], cwd=repo, check=True)
    trees, step = bench(store_home, repo)
    asyncio.run(trees.prepare(step, label=""))
    assert left(repo)
    assert not acted.exists(), acted.read_text()


def test_a_program_of_the_repository_is_not_taken_for_worktrunk(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wt(tmp_path, monkeypatch)
    (tmp_path / "bin" / "wt").rename(repo / "wt")
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    said = no_worktrunk()
    assert said is not None and "is not installed" in said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit('hooks of this project need your approval')", "exit code 1.*need your approval"),
        ("make(); print('made it')", "printed no JSON"),
        ("make(); say(action='existing')", "did not say that it made a worktree"),
        ("make(); say(path='beside')", "named no absolute path"),
        ("say()", "is no worktree of"),
        ("path = here / 'inside'; make(path); say(path=str(path))", "lies inside the checkout"),
    ],
)  # fmt: skip
def test_what_worktrunk_does_otherwise_than_it_says_leaves_nothing(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    wt(tmp_path, monkeypatch, f"\n    {body}\n")
    trees, step = bench(store_home, repo)
    with pytest.raises(StepFailed, match=said) as caught:
        asyncio.run(trees.prepare(step, label=""))
    assert caught.value.reason == "worktree" and not left(repo)


def test_a_runner_that_is_killed_before_it_knows_the_place_leaves_a_tree_that_is_found_by_its_branch(
    store_home: StoreHome, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wt(tmp_path, monkeypatch)
    trees, step = bench(store_home, repo)
    asyncio.run(trees.prepare(step, label=""))
    paths = store_home.run(make_plan(1).run_id)
    (ready,) = read_handoff(paths).worktrees
    planned = ready.model_copy(update={"state": "planned", "path": f"{ready.path}-unknown"})
    assert recover(planned, paths.root, lambda _: None).state == "failed" and not left(repo)


def test_what_speaks_against_worktrunk_is_said_before_anything_is_made(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = preflight("worker", "x", model="scripted:echo", **TREE).reasons
    assert any("worktrunk makes trees by its command wt, which is not installed" in one for one in said)
    wt(tmp_path, monkeypatch, "")
    assert preflight("worker", "x", model="scripted:echo", **TREE).ok
    rooted = {"worktree": {"provider": "worktrunk", "root": str(tmp_path)}}
    assert "worktrunk has a template of its own" in str(
        preflight("worker", "x", model="scripted:echo", **rooted).reasons
    )
    (tmp_path / "bin" / "wt").write_text("#!/bin/sh\necho a terminal\n")
    other = preflight("worker", "x", model="scripted:echo", **TREE).reasons
    assert "it is another program, or a worktrunk too old" in str(other)
