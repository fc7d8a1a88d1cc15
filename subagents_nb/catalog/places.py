"""Where agents, settings and instructions may lie, and how those places are written for people."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agent import AgentSource

# Any of these makes a folder a project.
_MARKERS = (".subagents", ".claude", ".pi", ".agents", ".git")
# Lowest priority first.
_AGENT_FOLDERS = (".agents", ".pi/agents", ".claude/agents", ".subagents/agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that may hold agent files."""

    path: Path
    where: str  # never absolute
    source: AgentSource


def project_root(cwd: Path, *, home: Path | None = None) -> Path:
    """Return the nearest folder at or above `cwd` that is a project, else `cwd`.

    The home folder is never a project: its `.claude` and the like are the user's own. Nor is a folder above `cwd` where
    anybody may create files, such as /tmp: somebody else's `.agents` there must not reach us.
    """
    cwd, home = cwd.resolve(), _home(home)
    for folder in (cwd, *cwd.parents):
        if folder == home:
            break
        if any(_present(folder / marker) for marker in _MARKERS) and (folder == cwd or not _shared(folder)):
            return folder
    return cwd


def agent_places(root: Path, *, home: Path | None = None) -> tuple[Place, ...]:
    """Return the user's places, then the project's, lowest priority first."""
    home = _home(home)
    user = [Place(path=home / name, where=f"~/{name}", source="user") for name in _AGENT_FOLDERS]
    if root == home:
        return tuple(user)
    return (*user, *(Place(path=root / name, where=name, source="project") for name in _AGENT_FOLDERS))


def settings_files(root: Path, *, home: Path | None = None) -> tuple[Place, ...]:
    """Return the user's settings file, then the project's."""
    home, name = _home(home), ".subagents/settings.toml"
    user = Place(path=home / name, where=f"~/{name}", source="user")
    return (user,) if root == home else (user, Place(path=root / name, where=name, source="project"))


def shown_folder(folder: Path, *, home: Path | None = None) -> str:
    """Write a folder for a person, with `~` for the home folder."""
    home = _home(home)
    if folder == home:
        return "~"
    below = folder.is_relative_to(home)
    return printable(f"~/{folder.relative_to(home).as_posix()}" if below else folder.as_posix())


def printable(text: str) -> str:
    """Escape what a file name may hold and a line of text may not: newlines, control characters, stray bytes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _home(home: Path | None) -> Path:
    return (Path.home() if home is None else home).resolve()


def _present(path: Path) -> bool:
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True


def _shared(folder: Path) -> bool:
    """Whether the folder is sticky and writable by all, as /tmp is."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)
