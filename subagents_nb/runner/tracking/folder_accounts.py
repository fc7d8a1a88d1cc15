"""The accounts of steps that work in folders of their own below the run's directory, as one with the run's."""

from __future__ import annotations

import posixpath
from pathlib import Path

from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.runner.tracking.recorder import ReadRecorder


class FolderReads:
    """One recorder for each folder: each knows paths relative to where the tools of its steps work."""

    def __init__(self, whole: ReadRecorder, root: Path) -> None:
        self._whole = whole
        self._root = root
        self._parts: dict[str, ReadRecorder] = {}
        self._children: list[tuple[str, ReadLog]] = []

    def of(self, folder: str | None) -> ReadRecorder:
        """Return the recorder for steps that work in a folder; without one, in the run's directory."""
        if not folder:
            return self._whole
        if folder not in self._parts:
            self._parts[folder] = ReadRecorder(self._root / folder, above=folder)
        return self._parts[folder]

    def take(self, folder: str, log: ReadLog | None, *, who: str) -> None:
        """Take in what another run read that worked in a folder for this one; None: that is not known."""
        if log is None:
            self._whole.untracked(f"what {who} read is not known")
        else:
            whose = tuple(f"{who}: {why}" for why in log.untracked)
            self._children.append((folder, log.model_copy(update={"untracked": whose})))

    def log(self) -> ReadLog | None:
        """Return all accounts as one, by paths relative to the run's directory."""
        log = self._whole.log()
        for folder, part in list(self._parts.items()):
            more = part.log()
            if log is not None and more is not None:
                log = _together(log, more, folder)
        for folder, child in self._children:
            if log is not None:
                log = _together(log, child, folder)
        return log


def _together(log: ReadLog, more: ReadLog, folder: str) -> ReadLog:
    def at(path: str) -> str:
        return posixpath.normpath(posixpath.join(folder, path))

    def moved(values: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(
            at(one) if isinstance(one, str) else one.model_copy(update={"path": at(one.path)})  # type: ignore[attr-defined]
            for one in values
        )

    update: dict[str, object] = {"untracked": (*log.untracked, *more.untracked)}
    update["memory"] = tuple(dict.fromkeys((*log.memory, *more.memory)))  # which lies in no folder of the run
    for name in ("files", "names", "own", "left", "changed", "meanwhile", "beside"):
        update[name] = tuple(dict.fromkeys((*getattr(log, name), *moved(getattr(more, name)))))
    # A file that one step wrote and another read is no input of the run.
    own = {*update["own"], *update["changed"]}  # type: ignore[misc]
    update["files"] = tuple(one for one in update["files"] if one.path not in own)  # type: ignore[attr-defined]
    return log.model_copy(update=update)
