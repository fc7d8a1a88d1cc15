"""Some of the runs of a sweep, whose handles know the types that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Run, Runs
from subagents_nb.store import StoreHome


class SweptRuns(Runs):
    """Runs of a sweep, in the order of its grid. `handle` makes the handle of one by its id."""

    def __init__(self, home: StoreHome, snapshots: Sequence[Snapshot], handle: Callable[[str], Run]) -> None:
        super().__init__(home, snapshots)
        self._handle = handle

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return one run's handle, or a part of the list."""
        if isinstance(index, slice):
            return SweptRuns(self._home, self.snapshots[index], self._handle)
        return self._handle(self.snapshots[index].run_id)

    def __iter__(self) -> Iterator[Run]:
        return (self._handle(snapshot.run_id) for snapshot in self.snapshots)
