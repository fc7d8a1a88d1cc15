"""Look up what planning needs to know, once, before anything is decided."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from subagents_nb import local_model
from subagents_nb.catalog import project_context, project_root
from subagents_nb.catalog.search_paths import shown_folder
from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS, SCRIPT_FOLDER
from subagents_nb.launching.gathering.memory_folders import memory_folders
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning.launch_environment import FolderLookup
from subagents_nb.store.layout import default_home

_EXTRA_MODULES = {
    "anthropic": "anthropic",
    "google": "google.genai",
    "groq": "groq",
    "mistral": "mistralai",
    "mcp": "mcp",
}


def look_up_environment(
    cwd: str | os.PathLike[str] | None,
    *,
    environ: Mapping[str, str],
    models: Sequence[str | None] = (),
    folders: Sequence[str] = (),
) -> LaunchEnvironment:
    """Return what a launch from `cwd` finds. `models` are those it names, for what is to be looked up of each.

    `folders` are those that its steps shall work in.

    Never raises: what can't be looked up is a problem in it.
    """
    try:
        absolute = _absolute(cwd)
        problem = _cwd_problem(absolute, asked=str(cwd) if cwd is not None else None)
        store = _store_from(absolute) if problem is None else None
        if problem is None and store is not None and store.partition(os.sep)[0] in (".", ".."):
            problem, store = _within_the_store(absolute), None
    except FileNotFoundError:
        absolute, store = Path(cwd or ""), None
        problem = "the working directory of this process is gone; change to one that is there, or give cwd whole"
    except RuntimeError as error:  # ~user without such a user
        absolute, store = Path(cwd or ""), None
        problem = f"the working directory {str(cwd)!r} can't be found: {error}"
    project = project_root(absolute) if problem is None else None
    return LaunchEnvironment(
        cwd=str(absolute),
        cwd_problem=problem,
        store=store,
        environ_names=frozenset(name for name, value in environ.items() if value.strip()),
        local_problem=local_model.available(),
        missing_extras=_missing_extras(*((folder, _changed_at(folder)) for folder in sys.path)),
        scripts=_scripts(absolute, models) if problem is None else BUILTIN_SCRIPTS,
        project_context=project_context(project) if project is not None else "",
        project=shown_folder(project) if project is not None else "",
        project_root=str(project or ""),
        memory=memory_folders(absolute, project=project) if problem is None else {},
        folders={asked: _folder_below(absolute, asked) for asked in folders} if problem is None else {},
    )


def _absolute(cwd: str | os.PathLike[str] | None) -> Path:
    path = Path(cwd).expanduser() if cwd is not None else Path.cwd()
    return Path(os.path.normpath(path if path.is_absolute() else Path.cwd() / path))


def _cwd_problem(path: Path, *, asked: str | None) -> str | None:
    shown = shown_folder(path)
    named = f"{shown!r}" if asked is None or asked in (shown, str(path)) else f"{shown!r} (asked for as {asked!r})"
    try:
        if not path.exists():
            return f"the working directory {named} does not exist"
        if not path.is_dir():
            return f"the working directory {named} is not a directory"
    except OSError as error:
        return f"the working directory {named} can't be looked at ({error.strerror})"
    if not os.access(path, os.R_OK | os.X_OK):
        return f"the working directory {named} can't be read; check its permissions"
    return None


def _store_from(cwd: Path) -> str | None:
    """Return the way from a directory to the run store; None if neither lies in the other."""
    try:
        way = os.path.relpath(os.path.realpath(default_home()), os.path.realpath(cwd))
    except ValueError:  # a name with a zero in it is no directory, and refused as such
        return None
    parts = way.split(os.sep)
    return way if ".." not in parts or set(parts) == {".."} else None  # `.` and `..`: the directory lies in it


def _within_the_store(cwd: Path) -> str:
    return f"the working directory {shown_folder(cwd)!r} lies in the run store, which is for runs alone; choose another"


@lru_cache(maxsize=1)
def _missing_extras(*_path: tuple[str, int]) -> frozenset[str]:
    """Return the extras that can't be imported; they are looked for again when a folder of `sys.path` has changed."""
    missing = set()
    for extra, module in _EXTRA_MODULES.items():
        try:
            found = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            missing.add(extra)
    return frozenset(missing)


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _scripts(cwd: Path, models: Sequence[str | None]) -> frozenset[str]:
    own = {path.stem for path in (cwd / SCRIPT_FOLDER).glob("*.json")} if (cwd / SCRIPT_FOLDER).is_dir() else set()
    for model in models:
        named = (model or "").removeprefix("scripted:")
        with contextlib.suppress(OSError):  # a name too long for a file
            if named.endswith(".json") and not Path(named).is_absolute() and (cwd / named).is_file():
                own.add(named)
    return BUILTIN_SCRIPTS | own


def _folder_below(base: Path, asked: str) -> FolderLookup:
    """Return where a folder lies below the working directory, links resolved, or why no step can work there."""
    if not asked.strip() or any(ord(char) < 32 for char in asked):
        return FolderLookup(problem=f"{asked!r} names no folder")
    root, place = os.path.realpath(base), os.path.realpath(base / asked)
    below = os.path.relpath(place, root)
    if below == ".":
        return FolderLookup()
    parts = Path(below).parts
    store = os.path.realpath(default_home())
    if ".." in parts:
        return FolderLookup(problem=f"{asked!r} lies outside the run's directory; launch with another --cwd")
    if not os.path.isdir(place):
        what = "is no folder" if os.path.lexists(place) else "does not exist"
        return FolderLookup(problem=f"{asked!r} {what} in the run's directory")
    if any(part.startswith(".") for part in parts):
        # There files act that no agent may write, and a step could not be kept from them by their names.
        return FolderLookup(problem=f"{asked!r} is a hidden folder, in which no step works")
    if Path(place).is_relative_to(store):
        return FolderLookup(problem=f"{asked!r} lies in the run store, which is for runs alone")
    if not os.access(place, os.R_OK | os.X_OK):
        return FolderLookup(problem=f"{asked!r} can't be read; check its permissions")
    return FolderLookup(path=Path(below).as_posix())
