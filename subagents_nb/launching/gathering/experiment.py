"""What a launch says about itself for later comparison: its experiment, its parameters, and where it came from."""

from __future__ import annotations

import functools
import math
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from subagents_nb.catalog import project_root
from subagents_nb.domain.plans.experiments import ExperimentPart, Lineage
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import LaunchRefused
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.git.git import Git, GitProblem
from subagents_nb.version import __version__

MAX_NOTES = 10_000
_MAX_NAME = 200
_MAX_PARAMS = 200
_PATIENCE_S = 0.5
_MAX_REF_BYTES = 4 * 1024 * 1024
_CURRENT: dict[str, str] = {}
# Of what the user's kernel has imported: where a version of these is known, it matters for the result.
_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow", "sklearn", "torch")


def set_experiment(name: str | None) -> None:
    """Let every later launch of this process belong to an experiment; None: to none.

    Raises:
        LaunchRefused: it is no name.
    """
    _CURRENT.clear()
    if name is not None:
        _CURRENT["name"] = _checked_name(name)


def current_experiment() -> str | None:
    """Return the experiment that launches of this process belong to when they name none."""
    return _CURRENT.get("name")


def experiment_part(
    given: str | ExperimentPart | None, params: Mapping[str, Any] | None, notes: str, *, origin: Origin, cwd: Path
) -> ExperimentPart:
    """Return what a launch says about itself. Its lineage is looked up only if it belongs to an experiment or sweep.

    Raises:
        LaunchRefused: a name or a parameter can't be kept.
    """
    part = given if isinstance(given, ExperimentPart) else ExperimentPart(name=_name_of(given))
    if params is not None:
        part = part.model_copy(update={"params": {**part.params, **_checked(params)}})
    if notes:
        if not isinstance(notes, str) or len(notes) > MAX_NOTES:
            raise LaunchRefused([f"notes are a text of at most {MAX_NOTES:,} characters"])
        part = part.model_copy(update={"notes": notes})
    if part.lineage is None and (part.name is not None or part.cell is not None or part.params):
        part = part.model_copy(update={"lineage": lineage_of(origin, cwd)})
    return part


def lineage_of(origin: Origin, cwd: Path) -> Lineage:
    """Return where a launch from `cwd` comes from: the cell, the commit, the versions. What can't be told is None."""
    folder = _git_folder(cwd)
    return Lineage(
        notebook=_in_project(origin.notebook),
        cell_id=origin.cell_id,
        source_sha256=origin.source_sha256,
        git_commit=_commit(folder) if folder is not None else None,
        git_dirty=_dirty(cwd) if folder is not None else None,
        packages=_versions(),
    )


def _in_project(notebook: str | None) -> str | None:
    """Return a notebook's path relative to the project; one that does not lie where we are stays as it is."""
    here = Path.cwd()
    if notebook is None or not (here / notebook).is_file():
        return notebook
    resolved, root = (here / notebook).resolve(), project_root(here)
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else notebook


def _name_of(given: str | None) -> str | None:
    return current_experiment() if given is None else _checked_name(given)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME or one_line(name, _MAX_NAME) != name:
        raise LaunchRefused([f"{name!r} can't name an experiment: use one line of at most {_MAX_NAME} characters"])
    return name


def _checked(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they are kept: single values, by names."""
    if not isinstance(params, Mapping):
        raise LaunchRefused(["params is a mapping of names to single values"])
    reasons = []
    if len(params) > _MAX_PARAMS:
        reasons.append(f"{len(params)} params are more than {_MAX_PARAMS}")
    for name, value in params.items():
        if not isinstance(name, str) or not name or len(name) > _MAX_NAME:
            reasons.append(
                f"a param's name is a text of at most {_MAX_NAME} characters, not {one_line(repr(name), 60)}"
            )
        elif value is not None and not isinstance(value, str | int | float | bool):
            reasons.append(f"the param {name} is no single value but a {type(value).__name__}; give its name instead")
        elif isinstance(value, float) and not math.isfinite(value):
            reasons.append(f"the param {name} is {value}, which can't be kept; give it as a text")
    if reasons:
        raise LaunchRefused(reasons)
    return dict(params)


def _git_folder(cwd: Path) -> Path | None:
    """Return the repository's own folder, of a worktree the one that is its own."""
    for folder in (cwd, *cwd.parents):
        entry = folder / ".git"
        try:
            if entry.is_dir():
                return entry
            if entry.is_file():
                word, _, target = read_plain(entry, _MAX_REF_BYTES).decode("utf-8").partition(":")
                return folder / target.strip() if word == "gitdir" else None
        except (OSError, UnicodeDecodeError):
            return None
    return None


def _commit(folder: Path) -> str | None:
    head = _text(folder / "HEAD")
    if not head.startswith("ref:"):
        return _hash(head)
    ref = head.removeprefix("ref:").strip()
    if ".." in ref or ref.startswith("/"):
        return None
    common = folder / _text(folder / "commondir").strip() if (folder / "commondir").is_file() else folder
    for place in (folder, common):
        if found := _hash(_text(place / ref)):
            return found
    packed = (line.partition(" ") for line in _text(common / "packed-refs").splitlines())
    return next((_hash(commit) for commit, _, name in packed if name == ref), None)


def _text(path: Path) -> str:
    try:
        content = read_plain(path, _MAX_REF_BYTES)
    except OSError:
        return ""
    return content.decode("utf-8", "replace") if len(content) <= _MAX_REF_BYTES else ""


def _hash(text: str) -> str | None:
    digest = text.strip()
    return digest if len(digest) in (40, 64) and all(c in "0123456789abcdef" for c in digest) else None


def _dirty(cwd: Path) -> bool | None:
    try:
        return bool(Git(cwd=cwd, filters=False)("status", "--porcelain", within_s=_PATIENCE_S).strip())
    except GitProblem:
        return None


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "subagents-nb": __version__}
    if engine := _installed_version("pydantic-ai-slim"):
        versions["pydantic-ai-slim"] = engine
    for name in _LIBRARIES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = one_line(version, 80)
    return versions


@functools.cache
def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
