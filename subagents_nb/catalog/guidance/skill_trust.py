"""The skills of a project that bring programs, for the person's yes; what only is a text asks for none."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.catalog.guidance.skill_places import FOLDERS
from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.skills import LEFT_OUT, MAIN_FILES, MOST_FILES, is_script
from subagents_nb.store.files.fingerprints import Unsettled, file_sha256


def acting_skills(root: Path, catalog: AgentCatalog) -> Iterator[Acting]:
    """Yield the skills with programs that lie in a project: in its folders, and where its agents keep their own."""
    # Paths as texts: this looks at each of hundreds of skills at each launch.
    seen: set[str] = set()
    for folder in (*FOLDERS, *_of_agents(catalog)):
        for place in (folder, *(f"{folder}/{name}" for name in _names(root / folder))):
            main = next((one for one in MAIN_FILES if os.path.isfile(f"{root}/{place}/{one}")), None)
            if main is None or place in seen:
                continue
            seen.add(place)
            files = dict(_files(root, place))
            scripts = sum(is_script(path, runs) for path, runs in files.items())
            if scripts:
                ordered = sorted(files, key=lambda path: (path != main, path))
                hashes = {f"{place}/{path}": _hash(root, f"{place}/{path}") for path in ordered}
                does = (f"{scripts} script{'' if scripts == 1 else 's'}",)
                yield Acting(kind="skill", name=posixpath.basename(place), does=does, files=hashes)


def _of_agents(catalog: AgentCatalog) -> Iterator[str]:
    for agent in catalog.agents:
        if agent.source == "project":
            yield from (posixpath.join(posixpath.dirname(agent.where), path) for path in agent.skill_paths)


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and entry.name not in LEFT_OUT)
    return []


def _files(root: Path, place: str) -> Iterator[tuple[str, bool]]:
    """Yield the files of a skill, and whether they may be executed; of one that has too many, no more than it may."""
    waiting, left = [""], MOST_FILES
    while waiting and left > 0:
        where = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(f"{root}/{place}/{where}") as entries:
            for entry in entries:
                path = f"{where}/{entry.name}" if where else entry.name
                if entry.name in LEFT_OUT:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif left > 0:
                    left -= 1
                    yield path, bool(entry.stat().st_mode & stat.S_IXUSR)


def _hash(root: Path, path: str) -> str:
    try:
        return file_sha256(root, path) or ""
    except Unsettled:
        return ""
