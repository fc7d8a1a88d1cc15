"""Many runs at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.launching.handle import Run
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.sweeping import sweep


class Runs(Sequence[Run]):
    """Runs, newest first, as they were when they were listed; each handle reads anew."""

    def __init__(self, home: StoreHome, snapshots: Sequence[Snapshot], *, hidden: int = 0) -> None:
        self._home = home
        self.snapshots = tuple(snapshots)
        self.hidden = hidden

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return one run's handle, or a part of the list."""
        if isinstance(index, slice):
            return Runs(self._home, self.snapshots[index])
        return Run(self._home, self.snapshots[index].run_id)

    def __len__(self) -> int:
        return len(self.snapshots)

    def __iter__(self) -> Iterator[Run]:
        return (Run(self._home, snapshot.run_id) for snapshot in self.snapshots)

    def __repr__(self) -> str:
        names = ", ".join(f"{s.name} {s.state or 'unreadable'}" for s in self.snapshots[:10])
        more = ", …" if len(self.snapshots) > 10 else ""
        return f"<{len(self.snapshots)} runs: {names}{more}>" if self.snapshots else "<no runs>"


def list_runs(home: StoreHome, *, state: str | None, agent: str | None, name: str | None, limit: int | None) -> Runs:
    """List the runs of a store; live ones whose process is gone get their verdict first."""
    reader = FileRuns(home)
    found: list[Snapshot] = []
    hidden = 0
    for snapshot in reader.all():
        current = snapshot
        if not current.ended and sweep(home, [current.run_id]):
            current = reader.snapshot(current.run_id)
        if not _fits(current, state, agent, name):
            continue
        if limit is not None and len(found) >= limit and current.ended:
            hidden += 1
            continue
        found.append(current)
    return Runs(home, found, hidden=hidden)


def _fits(snapshot: Snapshot, state: str | None, agent: str | None, name: str | None) -> bool:
    if state == "live":
        return not snapshot.ended
    return (
        (state is None or snapshot.state == state)
        and (agent is None or snapshot.agent == agent)
        and (name is None or snapshot.name == name)
    )
