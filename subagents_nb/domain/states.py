"""The life of a run and of a step: two enums, one table, one function.

Everything that decides which state may follow which is in this file. Timed out, interrupted, budget exhausted and the
like are reasons on the last record, not states.
"""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    QUEUED = "queued"  # on disk, not yet allowed to work
    RUNNING = "running"
    PAUSED = "paused"  # the process is gone, the session can be resumed
    COMPLETE = "complete"
    PARTIAL = "partial"  # useful work, but something asked for is missing
    FAILED = "failed"
    STOPPED = "stopped"
    REJECTED = "rejected"
    LOST = "lost"  # proved gone without a result

    @property
    def live(self) -> bool:
        """Whether a process of this run may still work."""
        return self in _LIVE

    @property
    def terminal(self) -> bool:
        """Whether no state can follow."""
        return not _NEXT[self]

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for: terminal, or paused."""
        return not self.live


class StepState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"
    REJECTED = "rejected"
    SKIPPED = "skipped"


class RunEvent(StrEnum):
    PROCEED = "proceed"
    COMPLETE = "complete"
    FALL_SHORT = "fall-short"
    FAIL = "fail"
    STOP = "stop"
    REJECT = "reject"
    PAUSE = "pause"
    LOSE = "lose"


_ENDS = {
    RunEvent.FAIL: RunState.FAILED,
    RunEvent.STOP: RunState.STOPPED,
    RunEvent.REJECT: RunState.REJECTED,
    RunEvent.LOSE: RunState.LOST,
}

_NEXT: dict[RunState, dict[RunEvent, RunState]] = {
    RunState.QUEUED: {RunEvent.PROCEED: RunState.RUNNING, **_ENDS},
    RunState.RUNNING: {
        RunEvent.COMPLETE: RunState.COMPLETE,
        RunEvent.FALL_SHORT: RunState.PARTIAL,
        RunEvent.PAUSE: RunState.PAUSED,
        **_ENDS,
    },
    RunState.PAUSED: {RunEvent.STOP: RunState.STOPPED},
    RunState.COMPLETE: {},
    RunState.PARTIAL: {},
    RunState.FAILED: {},
    RunState.STOPPED: {},
    RunState.REJECTED: {},
    RunState.LOST: {},
}

_LIVE = frozenset({RunState.QUEUED, RunState.RUNNING})


class IllegalTransition(ValueError):
    """The table has no such move; nothing was changed."""


def advance(state: RunState, event: RunEvent) -> RunState:
    """Return the state that follows `state` on `event`.

    Raises:
        IllegalTransition: the table lacks the move.
    """
    following = _NEXT[state].get(event)
    if following is None:
        raise IllegalTransition(f"a {state} run can't {event}")
    return following


def event_to(state: RunState) -> RunEvent:
    """Return the event that ends a live run in `state`."""
    for event, target in _NEXT[RunState.RUNNING].items():
        if target is state:
            return event
    raise IllegalTransition(f"no event ends a run as {state}")
