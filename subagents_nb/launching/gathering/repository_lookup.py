"""Look the repository around a working directory up, once, for the steps that ask for worktrees."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.agent import ALL_AGENTS, AgentCatalog, AgentDefinition
from subagents_nb.domain.plans.flow import Expand, Parallel, Step
from subagents_nb.domain.plans.plan import LaunchRequest
from subagents_nb.domain.plans.worktree import ref_problem
from subagents_nb.domain.values.reading import read_rest
from subagents_nb.launching.gathering.worktrunk_check import no_worktrunk
from subagents_nb.planning.launch_environment import GitPath, LaunchEnvironment, RepositoryState
from subagents_nb.planning.steps.worktree_plan import WrittenWorktree
from subagents_nb.store.files.named_files import hash_of
from subagents_nb.store.git.git import Git, GitProblem
from subagents_nb.store.layout import default_home

_OLDEST = (2, 31)
_MOST_DIRT = 1000
# Ours, and what Jupyter leaves beside every notebook: neither is part of anybody's work.
_NO_DIRT = (":(exclude,top,glob)**/.subagents/**", ":(exclude,top,glob)**/.ipynb_checkpoints/**")
_BUSY = (
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
)


def worktrees_of(request: LaunchRequest, catalog: AgentCatalog, default_agent: str) -> tuple[Any, ...]:
    """Return what is asked of worktrees anywhere in a request, by an agent's file too; empty: no step wants one."""
    options = [request.worktree]
    steps: list[Step | LaunchRequest] = [request] if request.flow is None else []
    for item in request.flow.items if request.flow is not None else ():
        if isinstance(item, Parallel):
            options.append(item.worktree)
            steps += item.steps
        elif isinstance(item, Step):
            steps.append(item)
        elif isinstance(item, Expand):
            options.append(item.worktree)
            steps.append(item.each)
    options += [step.worktree for step in steps]
    options += [one.worktree for one in _at_work({step.agent or default_agent for step in steps}, catalog)]
    return tuple(one for one in options if one is not None and one is not False)


def _at_work(names: set[str], catalog: AgentCatalog) -> Iterator[AgentDefinition]:
    """Yield the agents of these names, and those that they may delegate to."""
    others = list(catalog.agents)
    while matching := [one for one in others if ALL_AGENTS in names or not names.isdisjoint((one.name, *one.aliases))]:
        yield from matching
        names_here = {one.name for one in matching}
        others = [one for one in others if one.name not in names_here]
        names = {name for one in matching for name in one.agents or ()}


def with_repository(environment: LaunchEnvironment, asked: Sequence[Any]) -> LaunchEnvironment:
    """Return it with the repository, which is looked at only if worktrees are asked for, and how."""
    if not asked or environment.cwd_problem is not None:
        return environment
    return environment.model_copy(update={"git": look_up_repository(Path(environment.cwd), asked)})


def look_up_repository(cwd: Path, asked: Sequence[Any]) -> RepositoryState:
    """Return the state of the repository around `cwd`, and the refs, hooks and places that were asked for.

    Never raises: what can't be looked up is a problem in it.
    """
    if shutil.which("git") is None:
        return RepositoryState(problem="git is not installed, and worktrees are made by it")
    git = Git(cwd=cwd)
    try:
        if (problem := _too_old(git.line("version"))) is not None:
            return RepositoryState(problem=problem)
        root = Path(git.line("rev-parse", "--show-toplevel"))
        git_dir = Path(git.line("rev-parse", "--absolute-git-dir"))
    except GitProblem as error:
        return RepositoryState(problem=_no_repository(cwd, str(error)))
    if not Path(os.path.realpath(cwd)).is_relative_to(os.path.realpath(root)):
        return RepositoryState(problem=f"the repository that {cwd} lies in has its files elsewhere, in {root}")
    if any("\ud800" <= char <= "\udfff" for char in str(root)):
        return RepositoryState(problem="the path of the repository holds bytes that are no UTF-8; move it")
    written = [worktree for one in asked if (worktree := read_rest(WrittenWorktree, one)[0]) is not None]
    git = Git(cwd=root)
    try:
        return RepositoryState(
            root=str(root),
            subdir="" if (below := os.path.relpath(cwd.resolve(), root)) == "." else below,
            busy=next((what for name, what in _BUSY if (git_dir / name).exists()), None),
            dirt=tuple(_dirt(git, root)),
            commits=dict(_commits(git, {"HEAD", *_texts(written, "base_ref")})),
            checkouts=tuple(_checkouts(git)),
            worktrunk=no_worktrunk() if any(one.provider == "worktrunk" for one in written) else None,
            hooks={one: _hook(one, root) for one in _texts(written, "setup_hook")},
            roots={one: _root(one, root) for one in ("", *_texts(written, "root"))},
        )
    except GitProblem as error:
        return RepositoryState(problem=f"the repository {root} can't be looked at: {error}")


def _too_old(version_line: str) -> str | None:
    match = re.search(r"(\d+)\.(\d+)", version_line)
    if match is None or (int(match[1]), int(match[2])) >= _OLDEST:
        return None
    return f"git {match[0]} is too old for worktrees of steps; it takes {_OLDEST[0]}.{_OLDEST[1]} or later"


def _no_repository(cwd: Path, error_text: str) -> str:
    if "dubious ownership" in error_text:
        return (
            f"git does not trust the repository around {cwd}, since it belongs to another user; if you do, run: "
            "git config --global --add safe.directory with its path"
        )
    if "must be run in a work tree" in error_text or "is a bare repository" in error_text:
        return f"{cwd} is inside a bare repository or a .git directory, which has no files to work on"
    if "not a git repository" in error_text:
        return f"{cwd} is in no git repository; run git init and commit, or launch without a worktree"
    return f"the repository around {cwd} can't be used: {error_text}"


def _texts(written: Iterable[WrittenWorktree], key: str) -> list[str]:
    return [text for text in dict.fromkeys(getattr(one, key) for one in written) if text is not None]


def _dirt(git: Git, root: Path) -> Iterator[str]:
    outside = list(_NO_DIRT)
    store = Path(os.path.realpath(default_home()))
    if store.is_relative_to(root) and store != root:
        outside.append(f":(exclude,top,literal){store.relative_to(root)}")
    options = ("--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames", "--ignore-submodules=dirty")
    status = git("status", *options, "--", ".", *outside)
    for number, entry in enumerate(status.split(b"\0")[:-1]):
        if number == _MOST_DIRT:
            return
        yield entry[3:].decode("utf-8", "replace")


def _commits(git: Git, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if ref_problem(name) is not None:
            continue
        full = [name] if name == "HEAD" else [f"refs/{kind}/{name}" for kind in ("heads", "tags", "remotes")]
        for ref in full:
            try:
                yield name, git.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
                break
            except GitProblem:
                continue


def _checkouts(git: Git) -> Iterator[str]:
    for line in git("worktree", "list", "--porcelain").splitlines():
        if line.startswith(b"worktree "):
            yield os.fsdecode(line.removeprefix(b"worktree "))


def _hook(asked: str, root: Path) -> GitPath:
    try:
        named = Path(asked).expanduser()
    except RuntimeError:  # ~user without such a user
        return GitPath(problem="can't be found")
    path = named if named.is_absolute() else root / named
    own = "" if named.is_absolute() else os.path.normpath(asked)
    if own and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return GitPath(problem="leads out of the repository; give it whole, from / or ~")
    if not path.is_file():
        return GitPath(problem=f"is no file: there is no {path}")
    if not os.access(path, os.X_OK):
        return GitPath(problem=f"is not executable; run: chmod +x {path}")
    return GitPath(path=own or str(path), sha256=hash_of(path) if own else "")


def _root(asked: str, root: Path) -> GitPath:
    try:
        named = Path(asked).expanduser() if asked else root.parent
    except RuntimeError:
        return GitPath(problem="can't be found")
    path = Path(os.path.realpath(named if named.is_absolute() else root / named))
    there = next(one for one in (path, *path.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return GitPath(path=str(path), problem="is no directory that can be written to")
    return GitPath(path=str(path))
