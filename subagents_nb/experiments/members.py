"""Which run is which cell of a sweep. The plans on disk are the truth; what is kept here may be thrown away."""

from __future__ import annotations

from typing import NamedTuple

from subagents_nb.domain.grid import key_of
from subagents_nb.domain.states import RunState
from subagents_nb.launching import Run
from subagents_nb.launching.reuse import changed_since, settled
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.skim import skim, skim_ids

DONE = (RunState.COMPLETE, RunState.PARTIAL)


class Member(NamedTuple):
    """A run of the sweep: its id and its launch contract."""

    run_id: str
    contract: str


class Members:
    """The runs of one sweep by their cells, newest last."""

    def __init__(self, home: StoreHome, sweep: str) -> None:
        self._home = home
        self._sweep = sweep
        self._seen: set[str] = set()
        self._found: dict[str, list[Member]] = {}
        self._over: dict[str, RunState] = {}

    def look(self) -> None:
        """Take in the runs that have come since the last look."""
        for run_id in sorted(set(skim_ids(self._home)) - self._seen):
            plan = skim(self._home, run_id, ("plan.json",))["plan.json"]
            if plan is None:
                continue  # being made just now, perhaps
            self._seen.add(run_id)
            part = plan.get("experiment")
            cell = part.get("cell") if isinstance(part, dict) else None
            if not isinstance(part, dict) or not isinstance(cell, dict) or cell.get("sweep") != self._sweep:
                continue
            params, repeat = part.get("params") or {}, cell.get("repeat", 0)
            if isinstance(params, dict) and isinstance(repeat, int):
                self._found.setdefault(key_of(params, repeat), []).append(Member(run_id, str(plan.get("digest"))))

    def forget(self) -> None:
        """Let none of the runs that were seen stand for its cell any more."""
        self._found.clear()

    def of(self, key: str) -> list[Member]:
        """Return the runs of a cell that were seen, oldest first."""
        return self._found.get(key, [])

    def state(self, run_id: str) -> RunState | None:
        """Return a run's state; of one that can't change any more it is remembered."""
        if run_id not in self._over:
            state = Run(self._home, run_id).state
            if state is None or not state.terminal:
                return state
            self._over[run_id] = state
        return self._over[run_id]

    def holds(self, run_id: str) -> bool:
        """Say whether a run stands for its cell: it is at work, waits, is paused, or ended with something to show."""
        state = self.state(run_id)
        if state is RunState.QUEUED:
            # Perhaps a launcher was killed in the middle of it.
            state = settled(self._home, FileRuns(self._home), run_id, alone=True).state
        return state is not None and (state.live or state is RunState.PAUSED or state in DONE)

    def fits(self, run_id: str) -> bool:
        """Say whether a run would see today what it saw: a new launch of its cell may be spared."""
        return self.state(run_id) not in DONE or changed_since(self._home, run_id) is None
