"""Which run is which cell of a sweep. The plans on disk are the truth; what is kept here may be thrown away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.agents.settings import ReusePolicy
from subagents_nb.domain.plans.grid import key_of
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.usage import Usage
from subagents_nb.experiments.sweeps.sweep_cells import DONE, Reading, reading_of
from subagents_nb.launching import Run
from subagents_nb.launching.judging.scoring import scores_of
from subagents_nb.launching.starting.reuse_search import current_miss, settled
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.raw_reader import read_raw, read_raw_ids
from subagents_nb.store.runs.score_files import judged_at


class Member(NamedTuple):
    """A run of the sweep: its id, its launch contract, and with which others it shares a budget."""

    run_id: str
    contract: str
    pool: str = ""


class MemberIndex:
    """The runs of one sweep by their cells, newest last."""

    def __init__(self, home: StoreHome, sweeps: Collection[str], cwd: str | None) -> None:
        self._home = home
        self._sweeps = sweeps  # its digests
        self._cwd = cwd
        self._seen: set[str] = set()
        self._earlier: frozenset[str] = frozenset()
        self._maybe_live: set[str] = set()
        self._found: dict[str, list[Member]] = {}
        self._over: dict[str, Reading] = {}
        self._folders: dict[str, Path] = {}  # where each works
        self._fresh: Snapshot | None = None  # the run that was read last, which is asked more of at once
        self._scores: dict[str, tuple[int, Mapping[str, float]]] = {}

    def look(self) -> None:
        """Take in the runs that have come since the last look."""
        for run_id in sorted(set(read_raw_ids(self._home)) - self._seen):
            plan = read_raw(self._home, run_id, ("plan.json",))["plan.json"]
            if plan is None:
                continue  # being made just now, perhaps
            self._seen.add(run_id)
            part = plan.get("experiment")
            cell = part.get("cell") if isinstance(part, dict) else None
            if not isinstance(part, dict) or not isinstance(cell, dict) or cell.get("sweep") not in self._sweeps:
                continue
            if self._cwd is not None and plan.get("cwd") != self._cwd:
                continue  # the same sweep, at work in another place
            params, repeat = part.get("params") or {}, cell.get("repeat", 0)
            if isinstance(params, dict) and isinstance(repeat, int):
                self._folders[run_id] = Path(str(plan.get("cwd")))
                self.began(run_id)
                self._found.setdefault(key_of(params, repeat), []).append(
                    Member(run_id, str(plan.get("digest")), str((part.get("shares") or {}).get("pool", "")))
                )

    def live(self) -> list[str]:
        """Return those of its runs that were seen and are live, oldest first, forgotten ones too."""
        self._maybe_live = {run_id for run_id in self._maybe_live if self.read(run_id).live}
        return sorted(self._maybe_live)

    def began(self, run_id: str) -> None:
        """Take in that a run of the sweep was launched."""
        self._maybe_live.add(run_id)

    def load_members(self, *, forget: bool) -> None:
        """Take what there is as earlier runs, of which only those that may be reused stand in; or forget them."""
        self.look()
        self._earlier = frozenset(self._seen)
        if forget:
            self._found.clear()

    def of(self, key: str) -> list[Member]:
        """Return the runs of a cell that were seen, oldest first."""
        return self._found.get(key, [])

    def read(self, run_id: str) -> Reading:
        """Return how a run stands; one that can't change any more is not read again."""
        if run_id not in self._over:
            self._fresh = Run(self._home, run_id).status
            reading = reading_of(self._fresh)
            if reading.state is None or not reading.state.terminal:
                return reading
            self._over[run_id] = reading
        return self._over[run_id]

    def usage(self, run_id: str) -> Usage:
        """Return what a run used, in tokens and money."""
        reading = self.read(run_id)
        return Usage(input_tokens=reading.tokens, cost_usd=reading.cost)

    def scores(self, run_id: str) -> Mapping[str, float]:
        """Return the scores of a run by name; they are read again when another was given since."""
        at = judged_at(self._home.run(run_id))
        if run_id not in self._scores or self._scores[run_id][0] != at:
            self._scores[run_id] = at, dict(scores_of(self._home, run_id)) if at else {}
        return self._scores[run_id][1]

    def state(self, run_id: str) -> RunState | None:
        """Return a run's state; None if nothing of it can be read."""
        return self.read(run_id).state

    def holds(self, run_id: str) -> bool:
        """Say whether a run stands for its cell: it is at work, waits, is paused, or ended with something to show."""
        state = self.state(run_id)
        if state is RunState.QUEUED:
            # Perhaps a launcher was killed in the middle of it.
            state = settled(self._home, FileRuns(self._home), run_id, alone=True).state
        return state is not None and (state.live or state is RunState.PAUSED or state in DONE)

    def reuse_miss(self, run_id: str, policy: ReusePolicy) -> str | None:
        """Return why a run that holds may not be taken for its cell; None if it may.

        One that was launched since the beginning, by this sweep or by one beside it, is as it should be.
        """
        if run_id not in self._earlier or self.state(run_id) is RunState.PAUSED:
            return None
        fresh, self._fresh = self._fresh, None
        if fresh is None or fresh.run_id != run_id:
            fresh = Run(self._home, run_id).status
        return current_miss(self._home, fresh, self._folders[run_id], policy, good=DONE)
