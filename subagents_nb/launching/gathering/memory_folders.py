"""Where memory lies: below the home folder, or in the main checkout of a project, whichever of its worktrees asks."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.catalog import project_root
from subagents_nb.catalog.trust import home_folder
from subagents_nb.domain.agents.memory import FOLDER, MemoryScope
from subagents_nb.planning.launch_environment import FolderLookup
from subagents_nb.store.files.opener import read_plain

_MOST_BYTES = 8192


def memory_folders(
    cwd: Path, *, home: Path | None = None, project: Path | None = None
) -> dict[MemoryScope, FolderLookup]:
    """Return the memory folders for work in a directory, whether they are there or not.

    `project` is the root of the project around it, where that is known already.
    """
    checkout = main_checkout(project or project_root(cwd, home=home))
    return {"user": FolderLookup(path=os.path.realpath(home_folder(home) / FOLDER)), "project": _inside(checkout)}


def _inside(project: Path) -> FolderLookup:
    """Return the folder of a project; what comes with a project leads nowhere else."""
    root, real = os.path.realpath(project), os.path.realpath(project / FOLDER)
    if real != os.path.join(root, FOLDER):
        return FolderLookup(problem=f"the memory folder {FOLDER} of this project is a link, and is not followed")
    return FolderLookup(path=real)


def main_checkout(root: Path) -> Path:
    """Return the main checkout of the repository that a folder is a worktree of; the folder itself if it is none.

    Both must say so, as git has them do: gitrepository-layout(5). One file alone could name any folder.
    """
    try:
        if not (root / ".git").is_file():
            return root
        named = _line(root / ".git").removeprefix("gitdir:").strip()
        own = Path(os.path.realpath(root / named))
        back, common = _line(own / "gitdir"), Path(os.path.realpath(own / _line(own / "commondir")))
        both = os.path.realpath(own / back) == os.path.realpath(root / ".git")
    except (OSError, ValueError):
        return root
    return common.parent if both and common.name == ".git" else root


def _line(path: Path) -> str:
    return read_plain(path, _MOST_BYTES).decode().strip()
