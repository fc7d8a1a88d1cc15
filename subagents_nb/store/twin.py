"""A store in memory, for tests and examples: the same questions, answered from a dictionary."""

from __future__ import annotations

from collections.abc import Iterable

from subagents_nb.domain.snapshot import Damage, Snapshot


class MemoryRuns:
    """Runs that were put in by hand; `put` replaces."""

    def __init__(self, snapshots: Iterable[Snapshot] = ()) -> None:
        self._runs = {snapshot.run_id: snapshot for snapshot in snapshots}

    def put(self, snapshot: Snapshot) -> None:
        """Add or replace one run."""
        self._runs[snapshot.run_id] = snapshot

    def ids(self) -> list[str]:
        """Return all run ids, newest first."""
        return sorted(self._runs, reverse=True)

    def snapshot(self, run_id: str, *, whole: bool = False) -> Snapshot:  # noqa: ARG002 - the seam's signature
        """Return one run; an unknown id is a run whose directory is gone."""
        gone = Damage(document="run", kind="missing", message="the run's directory is gone")
        return self._runs.get(run_id, Snapshot(run_id=run_id, damage=(gone,)))
