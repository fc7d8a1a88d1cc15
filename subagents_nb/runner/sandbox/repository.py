"""The repository around a workspace, as git's own files say: gitrepository-layout(5)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.git.git import Git, GitProblem

_MOST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout. Of a linked worktree, git keeps what is its own, and what it shares with others, elsewhere."""

    root: str
    own: str = ""
    common: str = ""


def repository_of(workspace: str, homes: Collection[str]) -> Repository | None:
    """Return the checkout that a folder lies in; one that is a home folder, or above one, counts as none."""
    for folder in (Path(workspace), *Path(workspace).parents):
        if str(folder) == "/" or any(f"{home}/".startswith(f"{folder}/") for home in homes):
            return None
        git = folder / ".git"
        if git.is_symlink():
            return None
        if git.is_dir():
            return Repository(str(folder))
        if git.is_file():
            return _linked(folder)
    return None


def author_of(root: str) -> dict[str, str]:
    """Return who commits in a checkout, as variables of git's: a sandbox does not see where it is written down."""
    found: dict[str, str] = {}
    for key, name in (("user.name", "NAME"), ("user.email", "EMAIL")):
        with contextlib.suppress(GitProblem):
            if said := Git(cwd=Path(root)).line("config", "--get", key):
                found |= {f"GIT_AUTHOR_{name}": said, f"GIT_COMMITTER_{name}": said}
    return found


def _linked(root: Path) -> Repository:
    """Return a linked worktree. Both sides must say that it is one: one file alone could name any folder."""
    try:
        own = Path(os.path.realpath(root / _line(root / ".git").removeprefix("gitdir:").strip()))
        common = Path(os.path.realpath(own / _line(own / "commondir")))
        back = os.path.realpath(own / _line(own / "gitdir"))
    except (OSError, ValueError):
        return Repository(str(root))
    if own.parent == common / "worktrees" and back == os.path.realpath(root / ".git"):
        return Repository(str(root), str(own), str(common))
    return Repository(str(root))


def _line(path: Path) -> str:
    return read_plain(path, _MOST_BYTES).decode().strip()
