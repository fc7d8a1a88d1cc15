"""A step that works in a folder of its own below the run's directory, or below its worktree's."""

from __future__ import annotations

import os
import posixpath
from dataclasses import replace
from pathlib import Path

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import ChangedMeanwhile, EngineEvent, FileChanged, StepFailed


def folder_of(step: StepPlan, root: Path) -> Path:
    """Return the directory a step works in.

    Raises:
        StepFailed: it is not there any more, or leads out of the run's directory by now ("setup").
    """
    if step.cwd is None:
        return root
    place = root / step.cwd
    try:
        if step.worktree is not None:
            place.mkdir(parents=True, exist_ok=True)  # git knows of no empty directory
        if os.path.realpath(place) == os.path.join(os.path.realpath(root), step.cwd) and place.is_dir():
            return place
    except OSError as error:
        raise StepFailed("setup", f"Its folder {step.cwd} can't be used: {error.strerror}.") from error
    raise StepFailed("setup", f"Its folder {step.cwd} is not there any more, or is a link by now.")


def from_root(path: str, folder: str | None) -> str:
    """Return a path as it stands from the run's directory."""
    return path if folder is None or posixpath.isabs(path) else posixpath.normpath(posixpath.join(folder, path))


def from_folder(path: str, folder: str | None) -> str:
    """Return a path, as it stands from the run's directory, as a step in a folder of its own would write it."""
    return path if folder is None else path.removeprefix(f"{folder}/")


def seen_from_root(event: EngineEvent, folder: str | None) -> EngineEvent:
    """Return an event whose path stands from the run's directory."""
    if isinstance(event, FileChanged | ChangedMeanwhile):
        return replace(event, path=from_root(event.path, folder))
    return event
