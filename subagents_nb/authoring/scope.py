"""Where the person's own agents and settings are written, and those of the project around a folder."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.catalog.guidance.refinement_files import refinement_places
from subagents_nb.catalog.search_paths import SearchPath, agent_search_paths, project_root, settings_files
from subagents_nb.errors import RequestError


def folder_of(scope: str, cwd: Path) -> SearchPath:
    """Return the folder into which agent files of a scope are written.

    Raises:
        RequestError: there is no such scope, or a link leads out of the project.
    """
    return _within([one for one in agent_search_paths(project_root(cwd), cwd=cwd) if one.source == _known(scope)], cwd)


def settings_of(scope: str, cwd: Path) -> SearchPath:
    """Return the settings file of a scope.

    Raises:
        RequestError: there is no such scope, or a link leads out of the project.
    """
    return _within([one for one in settings_files(project_root(cwd), cwd=cwd) if one.source == _known(scope)], cwd)


def refinements_of(scope: str, cwd: Path) -> SearchPath:
    """Return the folder of what is added to the instructions of agents.

    Raises:
        RequestError: there is no such scope, or a link leads out of the project.
    """
    return _within([one for one in refinement_places(project_root(cwd), cwd=cwd) if one.source == _known(scope)], cwd)


def _known(scope: str) -> str:
    if scope not in ("user", "project"):
        raise RequestError(f"There is no scope {scope!r}; there are user and project.")
    return scope


def _within(places: list[SearchPath], cwd: Path) -> SearchPath:
    if not places:
        raise RequestError(f"{cwd} is the home folder, in which there is no project; use the scope user.")
    place = places[-1]
    if place.root is not None and not Path(os.path.realpath(place.path)).is_relative_to(os.path.realpath(place.root)):
        raise RequestError(f"{place.where} is a link that leads out of the project, so nothing is written there.")
    return place
