"""Where skills may lie: by the agent's own file, in the project, in the person's home folder, in installed packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.catalog.guidance.skill_format import is_skill_name, normal
from subagents_nb.catalog.scopes.packages import package_paths
from subagents_nb.catalog.search_paths import find_project, not_counted, project_search_paths, shown_folder
from subagents_nb.catalog.trust import home_folder, how_to_allow
from subagents_nb.domain.agents.skills import SkillSource, SkillWanted

# Highest priority first: as of agents, what is meant for us comes before what is meant for another program.
FOLDERS = (".subagents/skills", ".claude/skills", ".agents/skills")
_ENTRY_POINTS = "subagents_nb.skills"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolder:
    """The folder of one skill."""

    path: Path
    where: str  # never absolute
    source: SkillSource
    problem: str | None = None  # why it can't be used
    guarded: bool = False  # above the working directory: what others may write does not count


def find_skill(wanted: SkillWanted, cwd: Path, *, home: Path | None = None) -> SkillFolder | None:
    """Return the folder of a skill, the first that is there; None if it is nowhere.

    One that is there and can't be used stands before those that come later, as it is with agents.
    """
    if not is_skill_name(wanted.name):
        return None
    name = normal(wanted.name)
    places = (*_by_its_agent(wanted, name, cwd, home), *_in_folders(name, cwd, home))
    return next((one for one in places if os.path.lexists(one.path)), None) or _in_packages(name)


def _by_its_agent(wanted: SkillWanted, name: str, cwd: Path, home: Path | None) -> Iterator[SkillFolder]:
    """Yield the places below the folders that an agent's file names: the skill itself, or a folder of skills."""
    if wanted.agent_source not in ("user", "project"):
        return
    theirs = wanted.agent_source == "project"
    base = find_project(cwd, home=home).root if theirs else home_folder(home)
    file = Path(wanted.agent_where.removeprefix("~/"))
    for path in wanted.paths:
        itself = normal(path.rpartition("/")[2]) == name
        below = file.parent / path / ("" if itself else name)
        shown = below.as_posix() if theirs else f"~/{below.as_posix()}"
        yield _checked(base / below, shown, "agent", root=base if theirs else None)


def _in_folders(name: str, cwd: Path, home: Path | None) -> Iterator[SkillFolder]:
    for place in project_search_paths(FOLDERS, find_project(cwd, home=home).root, home=home, cwd=cwd):
        if place.guarded and (others := not_counted(place)) is not None:
            root = place.root or place.path
            why = f"it does not count: {others}; {how_to_allow(shown_folder(root, home=home))}"
            yield SkillFolder(path=place.path / name, where=f"{place.where}/{name}", source="project", problem=why)
        else:
            shown = f"{place.where}/{name}"
            yield _checked(place.path / name, shown, "project", root=place.root, guarded=place.guarded)
    top = home_folder(home)
    for folder in FOLDERS:
        yield SkillFolder(path=top / folder / name, where=f"~/{folder}/{name}", source="user")


def in_home(name: str, *, home: Path | None = None) -> bool:
    """Say whether the person has a skill of this name in their home folder."""
    top = home_folder(home)
    return any(os.path.lexists(top / folder / name) for folder in FOLDERS)


def _checked(path: Path, where: str, source: SkillSource, *, root: Path | None, guarded: bool = False) -> SkillFolder:
    inside = root is None or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    why = None if inside else "it is a link that leads out of the project, and is not followed"
    return SkillFolder(path=path, where=where, source=source, problem=why, guarded=guarded)


def _in_packages(name: str) -> SkillFolder | None:
    for place in package_paths(_ENTRY_POINTS):
        if (path := place.path / name).is_dir():
            return SkillFolder(path=path, where=f"{place.where}/{name}", source="package")
    return None
