"""The skills of a project that bring programs, for the person's yes; what only is a text asks for none."""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.catalog.guidance.skill_places import FOLDERS, in_home
from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.skills import LEFT_OUT, MAIN_FILES, MOST_BYTES, MOST_FILES, acting_skill
from subagents_nb.store.files.opener import read_plain

_Identity = tuple[int, int, int, int]
_MOST_CACHED = 50_000
# What was changed this short a time ago may change again within the same tick of the clock, and is not kept.
_SETTLED_NS = 50_000_000
_folders: dict[str, tuple[_Identity, list[tuple[str, bool]]]] = {}  # names, and whether each is a folder
_hashes: dict[str, tuple[_Identity, str]] = {}


def acting_skills(root: Path, catalog: AgentCatalog) -> Iterator[Acting]:
    """Yield the skills with programs that lie in a project: in its folders, and where its agents keep their own.

    What did not change since it was last asked for is neither listed nor read again.
    """
    top, seen = os.fspath(root), set[str]()
    for folder in dict.fromkeys((*FOLDERS, *_of_agents(catalog))):
        below = (f"{folder}/{name}" for name, is_folder in _listed(f"{top}/{folder}") if is_folder)
        for place in (folder, *below):
            names = {name for name, is_folder in _listed(f"{top}/{place}") if not is_folder}
            if place in seen or not names.intersection(MAIN_FILES):
                continue
            seen.add(place)
            taken = in_home(posixpath.basename(place))
            if (item := acting_skill(place, _files(root, f"{top}/{place}"), takes_name=taken)) is not None:
                yield item


def _of_agents(catalog: AgentCatalog) -> Iterator[str]:
    for agent in catalog.agents:
        if agent.source == "project":
            yield from (posixpath.join(posixpath.dirname(agent.where), path) for path in agent.skill_paths)


def _files(root: Path, place: str) -> Iterator[tuple[str, bool, str]]:
    """Yield path, mode and hash of the files of a skill; of one that has too many, no more than it may have."""
    waiting, left = [""], MOST_FILES
    while waiting:
        where = waiting.pop()
        for name, is_folder in _listed(f"{place}/{where}" if where else place):
            path = f"{where}/{name}" if where else name
            if is_folder:
                waiting.append(path)
            elif (left := left - 1) >= 0:
                with contextlib.suppress(OSError):
                    about = os.stat(f"{place}/{path}")
                    yield path, bool(about.st_mode & stat.S_IXUSR), _hash(root, f"{place}/{path}", about)


def _listed(folder: str) -> list[tuple[str, bool]]:
    """Return what lies in a folder, without links to other folders, and what counts for nothing; none if it is none."""
    try:
        about = os.stat(folder)
        cached = _folders.get(folder)
        if cached is not None and cached[0] == _identity(about):
            return cached[1]
        with os.scandir(folder) as entries:
            names = [one for one in entries if one.name not in LEFT_OUT]
            found = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in names)
    except OSError:
        return []
    if _is_settled(about):
        _limit_cache(_folders)[folder] = _identity(about), found
    return found


def _hash(root: Path, path: str, about: os.stat_result) -> str:
    cached = _hashes.get(path)
    if cached is not None and cached[0] == _identity(about):
        return cached[1]
    try:
        digest = hashlib.sha256(read_plain(Path(path), MOST_BYTES, within=root)).hexdigest()
    except OSError:
        return ""
    if _is_settled(about):
        _limit_cache(_hashes)[path] = _identity(about), digest
    return digest


def _limit_cache(kept: dict) -> dict:  # type: ignore[type-arg]
    if len(kept) >= _MOST_CACHED:
        kept.clear()
    return kept


def _identity(about: os.stat_result) -> _Identity:
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _is_settled(about: os.stat_result) -> bool:
    return time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) > _SETTLED_NS
