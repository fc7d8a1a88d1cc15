"""What is looked up of the repository around a working directory, and when it is not looked at all."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import chain, expand, parallel, preflight, step
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.launching.composing.flows import as_chain
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.launching.gathering.repository_lookup import look_up_repository, with_repository, worktrees_of


def git(*args: str, cwd: Path) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *args]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "repo" / "runs and more"))
    root = tmp_path / "repo"
    (root / "sub").mkdir(parents=True)
    git("init", "-q", "-b", "main", cwd=root)
    (root / "sub" / "a.txt").write_text("a\n")
    git("add", "-A", cwd=root)
    git("commit", "-q", "-m", "a", cwd=root)
    return root


CATALOG = AgentCatalog(
    agents=(
        AgentDefinition(name="apart", aliases=("alone",), description="d", worktree=True),
        AgentDefinition(name="lead", description="d", agents=("apart", "scout")),
        AgentDefinition(name="over", description="d", agents=("*",)),
    )
)


def asked(default: str = "delegate", **fields: Any) -> tuple[Any, ...]:
    return worktrees_of(LaunchRequest.model_validate({"task": "t", **fields}), CATALOG, default)


def test_only_a_launch_that_asks_for_a_worktree_looks_at_git(repo: Path) -> None:
    assert asked() == () and asked(worktree=False) == ()
    facts = look_up_environment(repo, environ={})
    assert with_repository(facts, ()).git is None
    assert with_repository(facts, [True]).git is not None


def test_what_an_agent_of_the_launch_wants_by_its_file_is_looked_up() -> None:
    assert asked(agent="apart") == asked(agent="alone") == asked(default="apart") == (True,)
    assert asked(agent="scout", default="apart") == ()
    assert asked(agent="lead") == asked(agent="over") == (True,), "it may be delegated to"
    assert asked(flow=as_chain(chain(step("scout", "a"), step("apart", "b")))) == (True,)


def test_an_agent_that_is_isolated_by_its_file_is_planned_with_a_worktree(repo: Path) -> None:
    folder = repo.parent / "home" / ".agents"
    folder.mkdir()
    head = "---\nname: apart\ndescription: d\nisolation: worktree\n---\n"
    (folder / "apart.md").write_text(f"{head}You work.")
    found = preflight("apart", "t", model="scripted:echo", cwd=repo)
    assert found.plan is not None, found.reasons
    worktree = found.plan.steps[0].worktree
    assert worktree is not None and worktree.base_commit == git("rev-parse", "HEAD", cwd=repo)
    here = preflight("apart", "t", model="scripted:echo", cwd=repo, worktree=False)
    assert here.plan is not None and here.plan.steps[0].worktree is None


def test_what_any_part_of_a_flow_asks_for_is_found() -> None:
    one = {"base_ref": "v1"}
    flow = chain(
        step("scout", "a", worktree=one),
        parallel(step("scout", "b"), step("scout", "c", worktree=True), worktree={"root": "/x"}),
        expand("found", "/items", step("scout", "{item}", worktree={"root": "/y"}), worktree={"root": "/z"}),
    )
    assert asked(flow=as_chain(flow)) == ({"root": "/x"}, {"root": "/z"}, one, True, {"root": "/y"})


def test_a_clean_repository_is_told_with_its_refs(repo: Path) -> None:
    git("tag", "v1", cwd=repo)
    git("branch", "side", cwd=repo)
    facts = look_up_repository(repo / "sub", [{"base_ref": "v1"}, {"baseRef": "side"}, {"base_ref": "HEAD~0"}, True])
    head = git("rev-parse", "HEAD", cwd=repo)
    assert (facts.problem, facts.root, facts.subdir, facts.busy, facts.dirt) == (None, str(repo), "sub", None, ())
    assert facts.commits == {"HEAD": head, "v1": head, "side": head} and facts.checkouts == (str(repo),)
    assert facts.roots[""].path == str(repo.parent)


def test_the_run_store_and_what_is_ours_or_jupyters_is_no_dirt(repo: Path) -> None:
    for name in ("runs and more/runs/x", "sub/.subagents/agents/a.md", ".subagents/s.toml", ".ipynb_checkpoints/n"):
        (repo / name).parent.mkdir(parents=True)
        (repo / name).touch()
    assert look_up_repository(repo, [True]).dirt == ()
    (repo / "sub" / "new file ü").touch()
    (repo / "sub" / "a.txt").unlink()
    assert look_up_repository(repo, [True]).dirt == ("sub/a.txt", "sub/new file ü")


def test_what_is_no_repository_to_work_in_is_said(repo: Path, tmp_path: Path) -> None:
    assert "is in no git repository; run git init" in (look_up_repository(tmp_path, [True]).problem or "")
    git("init", "-q", "--bare", "bare", cwd=tmp_path)
    assert "bare repository" in (look_up_repository(tmp_path / "bare", [True]).problem or "")
    assert ".git directory" in (look_up_repository(repo / ".git", [True]).problem or "")
    git("init", "-q", "unborn", cwd=tmp_path)
    assert look_up_repository(tmp_path / "unborn", [True]).commits == {}


def test_a_git_that_is_too_old_is_said(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old" / "git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.30.9\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent))
    assert "git 2.30 is too old" in (look_up_repository(repo, [True]).problem or "")


def test_a_repository_that_git_does_not_trust_is_said_with_what_to_do(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubting = tmp_path / "doubting" / "git"
    doubting.parent.mkdir()
    doubting.write_text("#!/bin/sh\necho \"fatal: detected dubious ownership in repository at '/x'\" >&2\nexit 128\n")
    doubting.chmod(0o755)
    monkeypatch.setenv("PATH", str(doubting.parent))
    assert "git config --global --add safe.directory" in (look_up_repository(repo, [True]).problem or "")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("REVERT_HEAD", "a revert"),
    ],
)
def test_what_is_going_on_is_named(repo: Path, name: str, what: str) -> None:
    (repo / ".git" / name).touch()
    assert look_up_repository(repo, [True]).busy == what


def test_hooks_and_places_are_looked_at(repo: Path, tmp_path: Path) -> None:
    hook = repo / "sub" / "setup"
    hook.write_text("#!/bin/sh\n")
    (repo / "link").symlink_to("/bin/sh")
    (tmp_path / "home" / "own").write_text("#!/bin/sh\n")
    (tmp_path / "home" / "own").chmod(0o755)
    asked = ["sub/setup", "sub/../../x", "link", "missing", str(hook), "~/own", "~nobody-is-called-so/x"]
    facts = look_up_repository(repo, [{"setup_hook": one} for one in asked])
    said = [facts.hooks[one].problem or "" for one in asked]
    assert "chmod +x" in said[0] and "leads out" in said[1] and "leads out" in said[2] and "is no file" in said[3]
    assert "chmod +x" in said[4] and said[5] == "" and "can't be found" in said[6]
    hook.chmod(0o755)
    facts = look_up_repository(
        repo, [{"setup_hook": "sub/../sub/setup"}, {"root": "~/new/place"}, {"root": "sub/a.txt"}]
    )
    assert facts.hooks["sub/../sub/setup"].path == "sub/setup"
    assert facts.hooks["sub/../sub/setup"].sha256 == sha256_text("#!/bin/sh\n")
    assert facts.roots["~/new/place"].problem is None
    assert facts.roots["~/new/place"].path == str(tmp_path / "home" / "new" / "place")
    assert "no directory" in (facts.roots["sub/a.txt"].problem or "")


def test_a_repository_whose_files_are_elsewhere_is_not_worked_in(repo: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git("config", "core.worktree", str(elsewhere), cwd=repo)
    assert look_up_repository(repo, [True]).problem is not None
