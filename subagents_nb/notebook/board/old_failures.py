"""Failures that nobody has looked at, and that newer runs have pushed off the list."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.board.board_rows import need_of
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.seen import is_seen

_LOOKED_AT = 2_000  # runs, the newest first: what is older is no news
_FOUND = 100
_EACH = 50  # runs that are read in one look; the rest follows with the next


class OldFailures:
    """Looks for them bit by bit, once: a failure that comes later is on the board already."""

    def __init__(self, home: StoreHome, fits: Callable[[Snapshot], bool]) -> None:
        self._home = home
        self._fits = fits
        self._reader = FileRuns(home)
        self._ids: Iterator[str] | None = None
        self._found = 0

    def more(self, known: Container[str]) -> list[Snapshot]:
        """Return those that one more look finds beside the known ones."""
        if self._ids is None:
            self._ids = iter(self._reader.ids()[:_LOOKED_AT])
        found: list[Snapshot] = []
        read = 0
        for run_id in self._ids:
            if run_id in known or not self._reader.has_terminal_record(run_id) or is_seen(self._home.run(run_id)):
                continue
            read += 1
            snapshot = self._reader.snapshot(run_id)
            if need_of(snapshot, seen=False) == "failed" and self._fits(snapshot):
                found.append(snapshot)
            if read >= _EACH or self._found + len(found) >= _FOUND:
                break
        self._found += len(found)
        if self._found >= _FOUND:
            self._ids = iter(())
        return found
