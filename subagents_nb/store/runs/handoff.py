"""`handoff.json`: which worktrees a run made and what became of them, written before each change of any of them."""

from __future__ import annotations

import contextlib
import threading

from subagents_nb.domain.plans.worktree import Handoff, WorktreeRecord
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document

NAME = "handoff.json"
LOCK = "handoff.lock"
# While it is there, nobody deletes the run: a tree of it still holds files.
_UNRESOLVED = "unresolved-worktrees"


def read_handoff(paths: RunPaths, *, disk: Disk = DISK) -> Handoff:
    """Return the worktrees of a run; none, if it never planned any.

    Raises:
        Unreadable: the file is there and can't be used.
    """
    try:
        return read_document(paths.root / NAME, Handoff, paths.root.name, disk=disk)
    except Unreadable as error:
        if error.kind == "missing":
            return Handoff(run_id=paths.root.name)
        raise


class HandoffFile:
    """The writing half. One process at a time: the runner, or whoever holds `handoff.lock` when the run has ended."""

    def __init__(self, paths: RunPaths, *, disk: Disk = DISK) -> None:
        self.paths = paths
        self.disk = disk
        self._guard = threading.Lock()
        self._handoff: Handoff | None = None

    def of(self, step: int) -> WorktreeRecord | None:
        """Return what is known of a step's worktree.

        Raises:
            Unreadable: the file is there and can't be used.
        """
        with self._guard:
            return self._read().of(step)

    def note(self, record: WorktreeRecord) -> None:
        """Bring one record to the device, before what it says is done.

        Raises:
            OSError: it could not be written; the file is as it was.
            Unreadable: the file is there and can't be used.
        """
        with self._guard:
            handoff = self._read().noting(record)
            open_ones = not all(one.resolved for one in handoff.worktrees)
            mark = self.paths.root / _UNRESOLVED
            if open_ones:
                self.disk.replace(mark, b"", durable=False)
            self.disk.replace(self.paths.root / NAME, encode(handoff), durable=True)
            self._handoff = handoff
            if not open_ones:
                self._unmark()

    def tidy(self) -> None:
        """Remove the mark of open trees if none is open: a process may have been killed between record and mark.

        Raises:
            Unreadable: the file is there and can't be used.
        """
        with self._guard:
            self._handoff = None
            if all(one.resolved for one in self._read().worktrees):
                self._unmark()

    @property
    def marked(self) -> bool:
        """Whether the run is marked as one that has open trees."""
        return (self.paths.root / _UNRESOLVED).exists()

    def _unmark(self) -> None:
        with contextlib.suppress(OSError):
            (self.paths.root / _UNRESOLVED).unlink()

    def _read(self) -> Handoff:
        if self._handoff is None:
            self._handoff = read_handoff(self.paths, disk=self.disk)
        return self._handoff
