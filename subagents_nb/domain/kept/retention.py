"""Which runs may be deleted. Whatever is in doubt is kept, and every run that is kept has a reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, assert_never

from subagents_nb.domain.runs.records import Identity
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.base import Document, Value
from subagents_nb.domain.values.words import one_line
from subagents_nb.plain_text import plain

KEEP_TAG = "keep"
DAY_S = 86_400.0
_DRIFT_S = 3600.0
_BELIEVED_S = 7 * DAY_S


class Reading(Value):
    """What the clocks said at a pass: the wall clock, and one that nobody sets, counted from a boot."""

    wall_s: float
    boot: str | None = None  # None: there is no such clock
    since_boot_s: float = 0.0


def clocks_agree(before: Reading | None, now: Reading) -> bool:
    """Say whether a wall clock may be believed, by an earlier reading: one alone, set wrong, would make all runs old.

    Within one boot both clocks have gone on alike. Across boots only a step that is small against the days that runs
    are kept is believed; after a longer one the next pass decides. A first reading has none to be held to.
    """
    if before is None:
        return True
    gone = now.wall_s - before.wall_s
    if before.boot is not None and before.boot == now.boot:
        return abs(gone - (now.since_boot_s - before.since_boot_s)) <= _DRIFT_S
    return 0 <= gone <= _BELIEVED_S


class Keep(StrEnum):
    """Why a run is kept. The values are stable, for programs; `SAID` has the words for people."""

    LINKED = "linked"
    UNREADABLE = "unreadable"
    MISMATCH = "identity-mismatch"
    LIVE = "live"
    QUEUED = "queued"
    PAUSED = "paused"
    PARTIAL = "partial"
    NO_LAST_WORD = "no-last-word"
    UNKNOWN_AGE = "unknown-age"
    YOUNG = "young"
    TAGGED = "tagged"
    REFERENCED = "referenced"
    OF_TREE = "of-tree"
    LEASED = "leased"
    UNRESOLVED = "unresolved"


SAID: dict[Keep, str] = {
    Keep.LINKED: "with a link, or somebody else's, in its place",
    Keep.UNREADABLE: "with a part that can't be read",
    Keep.MISMATCH: "whose documents speak of different runs",
    Keep.LIVE: "live",
    Keep.QUEUED: "queued",
    Keep.PAUSED: "paused",
    Keep.PARTIAL: "partial",
    Keep.NO_LAST_WORD: "without a last word",
    Keep.UNKNOWN_AGE: "of unknown age",
    Keep.YOUNG: "young",
    Keep.TAGGED: f"tagged {KEEP_TAG}",
    Keep.REFERENCED: "from which another run goes on, or which it waits for",
    Keep.OF_TREE: "below a root that is kept",
    Keep.LEASED: "whose session is in use",
    Keep.UNRESOLVED: "with files not yet taken over",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """What an observer saw of one run. There are no defaults: what was not looked at can't be decided on."""

    snapshot: Snapshot  # whole: the plan and the process record too
    age_s: float | None  # since its last sign of any kind, the youngest counts; None: can't be told
    lock: Literal["held", "free"] | None
    lease: Literal["held", "free"] | None  # of its session
    referenced: bool  # a run that lives or may be resumed goes on from it, or a live chain is attached to it
    root_stays: bool  # another run, at the root of its tree, is kept
    unresolved: bool  # it holds files that somebody still has to take over, such as a worktree
    linked: bool  # its directory, or something right in it, is a link, or not ours


def reason_to_keep(observation: RunObservation, *, keep_s: float) -> Keep | None:
    """Return why a run must stay, or None if it may be deleted."""
    snapshot = observation.snapshot
    if observation.linked:
        return Keep.LINKED
    if snapshot.damage or snapshot.plan is None or snapshot.state is None:
        return Keep.UNREADABLE
    if not _documents_agree(snapshot):
        return Keep.MISMATCH
    if observation.lock == "held":
        return Keep.LIVE
    unfinished = _unfinished(snapshot.state)
    if unfinished is not None:
        return unfinished
    if snapshot.result is None and snapshot.verdict is None:
        return Keep.NO_LAST_WORD
    if observation.age_s is None or not math.isfinite(observation.age_s):
        return Keep.UNKNOWN_AGE
    if not observation.age_s >= keep_s:  # so written that a limit which is no number keeps everything
        return Keep.YOUNG
    if any(tag.strip().lower() == KEEP_TAG for tag in snapshot.plan.tags):
        return Keep.TAGGED
    if observation.referenced:
        return Keep.REFERENCED
    if observation.root_stays:
        return Keep.OF_TREE
    if observation.lease == "held":
        return Keep.LEASED
    return Keep.UNRESOLVED if observation.unresolved else None


def may_be_resumed(state: RunState | None) -> bool:
    """Say whether a run that goes on from another one still needs it: not once it is over for good."""
    return state not in (RunState.STOPPED, RunState.REJECTED)


def may_still_read(state: RunState | None) -> bool:
    """Say whether a chain that is attached to another run still needs it: until it has ended, or nobody knows."""
    return state is None or state.live or state is RunState.PAUSED


def _unfinished(state: RunState) -> Keep | None:
    match state:
        case RunState.QUEUED:
            return Keep.QUEUED
        case RunState.RUNNING:
            return Keep.LIVE
        case RunState.PAUSED:
            return Keep.PAUSED
        case RunState.PARTIAL:
            return Keep.PARTIAL
        case RunState.COMPLETE | RunState.FAILED | RunState.STOPPED | RunState.REJECTED | RunState.LOST:
            return None
        case _:
            assert_never(state)


def _documents_agree(snapshot: Snapshot) -> bool:
    parts = (snapshot.plan, snapshot.status, snapshot.result, snapshot.verdict, snapshot.process)
    ids = {part.run_id for part in parts if part is not None}
    digests = {part.digest for part in parts[:3] if part is not None and part.digest}
    tokens = {part.token for part in (snapshot.plan, snapshot.process, *_identities(snapshot)) if part is not None}
    return ids == {snapshot.run_id} and len(digests) <= 1 and len(tokens) <= 1


def _identities(snapshot: Snapshot) -> tuple[Identity | None, ...]:
    return (snapshot.status.runner, snapshot.status.queue_keeper) if snapshot.status is not None else ()


class Tombstone(Document):
    """Why and when a run was deleted; stands beside its directory in the trash until that is removed for good."""

    kind: Literal["tombstone"] = "tombstone"
    name: str = ""
    reason: str
    deleted_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """One run that went, or would go, to the trash."""

    run_id: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What one pass did, or in a dry run would do."""

    dry_run: bool
    grace_s: float
    deleted: tuple[Deleted, ...] = ()
    kept: dict[Keep, int] = field(default_factory=dict)
    removed: tuple[str, ...] = ()  # run ids that left the trash for good
    in_grace: int = 0
    failed: tuple[tuple[str, str], ...] = ()  # run id or name in the trash, and what went wrong
    more: bool = False  # the pass was cut at its limit

    def __str__(self) -> str:
        would = "would be " if self.dry_run else ""
        lines = [f"{_runs(len(self.deleted))} {would}deleted{':' if self.deleted else '.'}"]
        lines += [f"  {run.run_id}  {one_line(run.name, 40)}  {run.reason}" for run in self.deleted]
        if self.deleted and not self.dry_run and self.grace_s > 0:
            lines.append(f"  Back again within {self.grace_s / 3600:.0f} h: subagents-nb restore RUN")
        if self.kept:
            listed = ", ".join(f"{number} {SAID[reason]}" for reason, number in sorted(self.kept.items()))
            lines.append(f"Kept: {listed}.")
        if self.removed:
            lines.append(f"{_runs(len(self.removed))} {would}removed from the trash for good.")
        if self.in_grace:
            lines.append(f"{_runs(self.in_grace)} in the trash.")
        lines += [f"Not done: {what}: {why}" for what, why in self.failed]
        return plain("\n".join(lines))


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def size(number: int) -> str:
    """Say a number of bytes: `640 B`, `12 KB`, `4.2 MB`, `1.3 GB`."""
    value = float(number)
    for unit in ("B", "KB", "MB"):
        if value < 999.5:
            return f"{value:.1f} {unit}" if unit == "MB" and value < 99.95 else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
