"""List the agent files below one folder, within bounds, and never fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from subagents_nb.catalog.search_paths import PROJECT_MARKERS, SearchPath, printable, shown_folder
from subagents_nb.catalog.trust import how_to_allow, who_else_writes
from subagents_nb.domain.agents.agent import AgentProblem, SearchedPlace

MAX_FILES = 2000
# Entries of any kind: a link to a huge tree without agents must not hold up a launch.
MAX_ENTRIES = 20_000
MAX_DEPTH = 8
# A backup or somebody else's project that came to lie among agents would bring agents that nobody put there.
PRUNED = frozenset({"node_modules", "skills", "sync-backups", *PROJECT_MARKERS})


@dataclass(slots=True)
class Scan:
    """What one place holds: files as (path, where), in the order of their names."""

    place: SearchedPlace
    files: list[tuple[Path, str]] = field(default_factory=list)
    problems: list[AgentProblem] = field(default_factory=list)


class _Full(Exception):
    """A bound was reached."""


def scan_path(place: SearchPath) -> Scan:
    """List every `.md` file of a place but `.chain.md`; each real folder is entered once.

    Links are followed, those of a project as far as it goes. What does not count is reported.
    """
    try:
        os.lstat(place.path)  # most places are not there, and need no second look
        if (why := _refused(place.path, place)) is not None:
            problem = AgentProblem(where=place.where, source=place.source, error=why)
            return Scan(_searched(place, "unreadable"), problems=[problem])
        top = _entries(place.path)
    except OSError as error:
        return Scan(_searched(place, _state_of(error)))
    walk = _Walk(place)
    walk.run(top)
    walk.files.sort(key=lambda entry: entry[1])
    searched = SearchedPlace(
        where=place.where,
        source=place.source,
        state="read" if walk.files else "empty",
        candidates=len(walk.files),
    )
    return Scan(searched, walk.files, walk.problems)


class _Walk:
    """One breadth-first walk and its counts."""

    def __init__(self, place: SearchPath) -> None:
        self.files: list[tuple[Path, str]] = []
        self.problems: list[AgentProblem] = []
        self._place = place
        self._entered: set[tuple[int, int]] = set()
        self._left = MAX_ENTRIES
        self._enter(place.path)

    def run(self, top: list[os.DirEntry[str]]) -> None:
        try:
            folders = list(self._take(top, self._place.where))
            for _ in range(MAX_DEPTH):
                folders = [file for path, where in folders for file in self._take(self._list(path, where), where)]
            if folders:
                raise _Full(f"folders deeper than {MAX_DEPTH} levels were not searched")
        except _Full as full:
            self._report(self._place.where, str(full))

    def _take(self, entries: list[os.DirEntry[str]], where: str) -> Iterator[tuple[Path, str]]:
        """Keep the files, hand on the folders that were not entered before."""
        for entry in entries:
            self._left -= 1
            if self._left < 0:
                raise _Full(f"stopped after {MAX_ENTRIES} entries; the rest was not searched")
            below = f"{where}/{printable(entry.name)}"
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError:  # a link onto itself
                continue
            wanted = is_file and entry.name.endswith(".md") and not entry.name.endswith(".chain.md")
            if (wanted or (is_folder and entry.name not in PRUNED)) and self._is_refused(entry, below):
                continue
            if wanted:
                if len(self.files) == MAX_FILES:
                    raise _Full(f"stopped after {MAX_FILES} files; the rest was not read")
                self.files.append((Path(entry.path), below))
            elif is_folder and entry.name not in PRUNED and self._enter(Path(entry.path)):
                yield Path(entry.path), below

    def _list(self, folder: Path, where: str) -> list[os.DirEntry[str]]:
        try:
            found = _entries(folder)
        except OSError as error:
            self._report(where, f"the folder can't be read: {error.strerror or error}")
            return []
        if marker := next((entry.name for entry in found if entry.name in PROJECT_MARKERS), None):
            self._report(where, f"it has its own {marker}, and is not searched; copy what you want of it")
            return []
        return found

    def _is_refused(self, entry: os.DirEntry[str], where: str) -> bool:
        place = self._place
        if not place.guarded and (place.root is None or not entry.is_symlink()):
            return False
        why = _refused(Path(entry.path), place)
        if why is not None:
            self._report(where, why)
        return why is not None

    def _enter(self, folder: Path) -> bool:
        """Say whether this real folder is new to the walk."""
        try:
            stat = folder.stat()
        except OSError:
            return False
        identity = (stat.st_dev, stat.st_ino)
        if identity in self._entered:
            return False
        self._entered.add(identity)
        return True

    def _report(self, where: str, error: str) -> None:
        self.problems.append(AgentProblem(where=where, source=self._place.source, error=error))


def _refused(path: Path, place: SearchPath) -> str | None:
    """Return why what lies in a project does not count: it leads out of it, or others may write it."""
    if place.root is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place.root)):
        return "it is a link that leads out of the project, and is not followed"
    others = who_else_writes(path.stat()) if place.guarded else None
    return None if others is None else f"it does not count: {others}; {how_to_allow(shown_folder(place.root or path))}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as iterator:
        entries = [entry for _, entry in zip(range(MAX_ENTRIES + 1), iterator, strict=False)]
    return sorted(entries, key=lambda entry: entry.name)


def _searched(place: SearchPath, state: str) -> SearchedPlace:
    return SearchedPlace.model_validate({"where": place.where, "source": place.source, "state": state})


def _state_of(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "absent"
    if isinstance(error, NotADirectoryError) or error.errno == errno.ENOTDIR:
        return "not a directory"
    return "unreadable"
