"""The folders that steps of a chain shall work in, looked up before the launch."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.planning.facts import FolderFact
from subagents_nb.store.layout import default_home


def folder_below(base: Path, asked: str) -> FolderFact:
    """Return where a folder lies below the working directory, links resolved, or why no step can work there."""
    if not asked.strip() or any(ord(char) < 32 for char in asked):
        return FolderFact(problem=f"{asked!r} names no folder")
    root, place = os.path.realpath(base), os.path.realpath(base / asked)
    below = os.path.relpath(place, root)
    if below == ".":
        return FolderFact()
    parts = Path(below).parts
    store = os.path.realpath(default_home())
    if ".." in parts:
        return FolderFact(problem=f"{asked!r} lies outside the run's directory; launch with another --cwd")
    if not os.path.isdir(place):
        what = "is no folder" if os.path.lexists(place) else "does not exist"
        return FolderFact(problem=f"{asked!r} {what} in the run's directory")
    if any(part.startswith(".") for part in parts):
        # There files act that no agent may write, and a step could not be kept from them by their names.
        return FolderFact(problem=f"{asked!r} is a hidden folder, in which no step works")
    if Path(place).is_relative_to(store):
        return FolderFact(problem=f"{asked!r} lies in the run store, which is for runs alone")
    if not os.access(place, os.R_OK | os.X_OK):
        return FolderFact(problem=f"{asked!r} can't be read; check its permissions")
    return FolderFact(path=Path(below).as_posix())
