"""Find the run that already does, or did, what a launch asks for; or say why none can stand in for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.plan import Draft
from subagents_nb.domain.reads import ReadLog
from subagents_nb.domain.records import RunResult
from subagents_nb.domain.reuse import ANEW, contract_key, why_not
from subagents_nb.domain.settings import REUSE_POLICIES, ReusePolicy
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.errors import LaunchRefused
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.contracts import alone_with, runs_of
from subagents_nb.store.fingerprints import Unsettled, file_sha256, names_below, names_sha256, own_names
from subagents_nb.supervisor.sweeping import sweep

_MOST_LOOKED_AT = 20  # of the newest runs of one contract
_BEGIN_S = 5.0  # a run that was let go on says so within milliseconds
_PAUSE_S = 0.005


@dataclass(frozen=True, slots=True)
class Match:
    """What was found: the run that stands in, or why none does; a note for the card in both cases."""

    run_id: str | None = None
    note: str = ""

    @property
    def why_not(self) -> str:
        """Return why no run stands in; empty where there was none of this contract."""
        return self.note.removeprefix(ANEW) if self.run_id is None else ""


NO_MATCH = Match()


def policy_of(asked: str | None, default: ReusePolicy, *, fresh: bool) -> ReusePolicy:
    """Return which runs may stand in.

    Raises:
        LaunchRefused: there is no such policy.
    """
    if fresh:
        return "never"
    for policy in REUSE_POLICIES:
        if policy == (asked or default):
            return policy
    raise LaunchRefused([f"there is no reuse {asked!r}; it is one of {', '.join(REUSE_POLICIES)}"])


@contextlib.contextmanager
def matching(home: StoreHome, draft: Draft, policy: ReusePolicy) -> Iterator[Match]:
    """Give what stands in for a launch; inside, nobody else launches the same contract.

    Raises:
        StoreError: somebody else is launching it all the time.
    """
    key = contract_key(draft)
    if key is None or policy == "never":
        yield NO_MATCH
        return
    with alone_with(home, key):
        yield find(home, draft, policy, alone=True)


def find(home: StoreHome, draft: Draft, policy: ReusePolicy, *, alone: bool = False) -> Match:
    """Find what stands in for a launch. `alone` says that nobody else can be launching the same just now."""
    key = contract_key(draft)
    if key is None or policy == "never":
        return NO_MATCH
    reader, reasons = FileRuns(home), []
    for run_id in runs_of(home, key)[:_MOST_LOOKED_AT]:
        snapshot = settled(home, reader, run_id, alone=alone)
        if snapshot.state is not None and snapshot.state.live:
            return Match(run_id, "It is at work already.")
        why = _why_not(snapshot, Path(draft.cwd), policy)
        if why is None:
            return Match(run_id)
        reasons.append((snapshot.state is not RunState.COMPLETE, why))
    if not reasons:
        return NO_MATCH
    # What keeps a complete run from standing in says more than that another one failed.
    return Match(None, f"{ANEW}{min(reasons, key=lambda one: one[0])[1]}.")


def changed_since(home: StoreHome, run_id: str) -> str | None:
    """Return what is not as a complete run saw or left it; None also where that is not known."""
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    result, plan = snapshot.result, snapshot.plan
    if result is None or plan is None or result.reads is None or not result.reads.tracked:
        return None
    return _differs(Path(plan.cwd), result.reads, result)


def settled(home: StoreHome, reader: FileRuns, run_id: str, *, alone: bool) -> Snapshot:
    """Read a run that a launcher may have left half begun, once it is plain whether it works.

    `alone` says that nobody else can be launching it just now.
    """
    deadline = time.monotonic() + (_BEGIN_S if alone else 0.0)
    while True:
        snapshot = reader.snapshot(run_id)
        if not snapshot.ended and sweep(home, [run_id]):
            snapshot = reader.snapshot(run_id)
        status = snapshot.status
        if snapshot.state is not RunState.QUEUED or (status is not None and status.queue_keeper is not None):
            return snapshot
        if alone and status is None:
            # Whoever launches holds the lock, and that is us: this launcher is dead, and its run never worked.
            return Snapshot(run_id=run_id)
        if time.monotonic() >= deadline:
            return snapshot
        time.sleep(_PAUSE_S)


def _why_not(snapshot: Snapshot, cwd: Path, policy: ReusePolicy) -> str | None:
    result = snapshot.result
    if result is None:
        if snapshot.state is None:
            return f"{snapshot.name} never began" if not snapshot.damage else f"{snapshot.name} can't be read"
        return f"{snapshot.name} is {snapshot.state}"
    why = why_not(result, policy)
    return why if why is not None or result.reads is None else _differs(cwd, result.reads, result)


def _differs(cwd: Path, reads: ReadLog, result: RunResult) -> str | None:
    """Return what is not as the run saw or left it."""
    try:
        for one in (*reads.files, *reads.left):
            now = file_sha256(cwd, one.path)
            if now != one.sha256:
                what = "is there" if one.sha256 is None else "is gone" if now is None else "changed"
                return f"{one.path} {what} since {result.name}"
        own = own_names(reads.own)
        for seen in reads.names:
            if names_sha256(names_below(cwd, seen.path, seen.pattern, seen.include), own) != seen.sha256:
                where = "the workspace" if seen.path == "." else seen.path
                return f"the names in {where} changed since {result.name}"
    except Unsettled as error:
        return f"{error}, since {result.name}"
    return None
