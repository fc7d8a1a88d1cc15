"""Where agents, settings and instructions may lie, and how those places are written for people."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.catalog.trust import home_folder, is_trusted, who_else_writes
from subagents_nb.domain.agents.agent import AgentSource

# Any of these makes a folder a project.
PROJECT_MARKERS = (".subagents", ".claude", ".pi", ".agents", ".git")
# Lowest priority first.
_AGENT_FOLDERS = (".agents", ".pi/agents", ".claude/agents", ".subagents/agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPath:
    """A folder that may hold agent files, or a file of settings."""

    path: Path
    where: str  # never absolute
    source: AgentSource
    root: Path | None = None  # links may not lead out of it; None: the person's own may lead anywhere
    guarded: bool = False  # above the working directory: what others may write does not count


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The project around a working directory, and folders above that would be it if others could not write there."""

    root: Path
    left_out: tuple[tuple[Path, str], ...] = ()  # with who may write there


def project_root(cwd: Path, *, home: Path | None = None) -> Path:
    """Return the nearest folder at or above `cwd` that is a project, else `cwd`."""
    return find_project(cwd, home=home).root


def find_project(cwd: Path, *, home: Path | None = None) -> Project:
    """Return the project around `cwd`.

    The home folder is never a project: its `.claude` and the like are the user's own. Nor is a folder above `cwd` where
    others may create files, such as /tmp or one that a group shares: somebody else's `.agents` there must not reach us.
    A folder that the person trusts may be shared.
    """
    cwd, top = cwd.resolve(), home_folder(home)
    left_out: list[tuple[Path, str]] = []
    for folder in (cwd, *cwd.parents):
        if folder == top:
            break
        if any(os.path.lexists(f"{folder}/{marker}") for marker in PROJECT_MARKERS):
            others = None if folder == cwd else _who_else_writes(folder)
            if others is None or is_trusted(folder, home=home):
                return Project(root=folder, left_out=tuple(left_out))
            left_out.append((folder, others))
    return Project(root=cwd, left_out=tuple(left_out))


def agent_search_paths(root: Path, *, home: Path | None = None, cwd: Path | None = None) -> tuple[SearchPath, ...]:
    """Return the user's places, then the project's, lowest priority first."""
    top = home_folder(home)
    user = [SearchPath(path=top / name, where=f"~/{name}", source="user") for name in _AGENT_FOLDERS]
    return (*user, *project_search_paths(_AGENT_FOLDERS, root, home=home, cwd=cwd))


def project_search_paths(
    names: Iterable[str], root: Path, *, home: Path | None = None, cwd: Path | None = None
) -> tuple[SearchPath, ...]:
    """Return folders of a project; none where the home folder stands for it, whose own are the person's."""
    if root == home_folder(home):
        return ()
    guarded = _is_guarded(root, home, cwd)
    return tuple(SearchPath(path=root / n, where=n, source="project", root=root, guarded=guarded) for n in names)


def settings_files(root: Path, *, home: Path | None = None, cwd: Path | None = None) -> tuple[SearchPath, ...]:
    """Return the user's settings file, then the project's."""
    top, name = home_folder(home), ".subagents/settings.toml"
    user = SearchPath(path=top / name, where=f"~/{name}", source="user")
    guarded = root != top and _is_guarded(root, home, cwd)
    project = SearchPath(path=root / name, where=name, source="project", root=root, guarded=guarded)
    return (user,) if root == top else (user, project)


def _is_guarded(root: Path, home: Path | None, cwd: Path | None) -> bool:
    return cwd is not None and root != cwd.resolve() and not is_trusted(root, home=home)


def not_counted(place: SearchPath) -> str | None:
    """Return why a guarded file or folder, or the folder that holds it, does not count; None if it does."""
    for path in (place.path.parent, place.path):
        try:
            if (others := who_else_writes(path.stat())) is not None:
                return others
        except OSError:
            return None  # it is not there, or said by whoever reads it
    return None


def shown_folder(folder: Path, *, home: Path | None = None) -> str:
    """Write a folder for a person, with `~` for the home folder."""
    top = home_folder(home)
    if folder == top:
        return "~"
    below = folder.is_relative_to(top)
    return printable(f"~/{folder.relative_to(top).as_posix()}" if below else folder.as_posix())


def printable(text: str) -> str:
    """Escape what a file name may hold and a line of text may not: newlines, control characters, stray bytes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _who_else_writes(folder: Path) -> str | None:
    try:
        return who_else_writes(folder.stat())
    except OSError as error:
        return f"it can't be looked at ({error.strerror})"
