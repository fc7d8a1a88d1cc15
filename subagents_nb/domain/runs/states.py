"""The lives of runs, steps, requests and questions as tables, whose moves are the only way in which a state is set.

Timed out, interrupted, budget exhausted and the like are reasons on the last record, not states. The drawings in
`docs/states.md` are made from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class IllegalTransition(ValueError):
    """The table has no such move; nothing was changed."""


class Lifecycle(Generic[S, E]):
    """Which state follows which, on what event. A state without a row is terminal."""

    def __init__(self, what: str, moves: Mapping[S, Mapping[E, S]]) -> None:
        self.what = what
        self.moves = moves

    def follow(self, state: S, event: E) -> S:
        """Return the state that follows `state` on `event`.

        Raises:
            IllegalTransition: the table lacks the move.
        """
        following = self.moves.get(state, {}).get(event)
        if following is None:
            raise IllegalTransition(f"no {state} {self.what} can {event}")
        return following

    def check(self, state: S, following: S) -> None:
        """Make sure that some event leads from the one state to the other.

        Raises:
            IllegalTransition: none does.
        """
        if following not in self.moves.get(state, {}).values():
            raise IllegalTransition(f"no {state} {self.what} can become {following}")

    def drawing(self, first: S) -> str:
        """Return the table as a drawing, in the language of mermaid."""
        lines = [f"    {s} --> {t}: {e}" for s, row in self.moves.items() for e, t in row.items()]
        return "\n".join(["stateDiagram-v2", f"    [*] --> {first}", *lines])


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
        return self not in RUN.moves

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for: terminal, or paused."""
        return not self.live


class StepState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"  # of a stage only, which has some of its steps
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


class StepEvent(StrEnum):
    BEGIN = "begin"
    COMPLETE = "complete"
    REJECT = "reject"
    FAIL = "fail"
    STOP = "stop"
    PAUSE = "pause"
    SKIP = "skip"
    CARRY = "carry"  # it stands as an earlier run left it
    REDO = "redo"  # nothing is left of what it came to


_RUN_ENDS = {
    RunEvent.FAIL: RunState.FAILED,
    RunEvent.STOP: RunState.STOPPED,
    RunEvent.REJECT: RunState.REJECTED,
    RunEvent.LOSE: RunState.LOST,
}
RUN = Lifecycle(
    "run",
    {
        RunState.QUEUED: {RunEvent.PROCEED: RunState.RUNNING, **_RUN_ENDS},
        RunState.RUNNING: {
            RunEvent.COMPLETE: RunState.COMPLETE,
            RunEvent.FALL_SHORT: RunState.PARTIAL,
            RunEvent.PAUSE: RunState.PAUSED,
            **_RUN_ENDS,
        },
        RunState.PAUSED: {RunEvent.STOP: RunState.STOPPED},
    },
)

_STEP_ENDS = {
    StepEvent.FAIL: StepState.FAILED,
    StepEvent.STOP: StepState.STOPPED,
    StepEvent.PAUSE: StepState.PAUSED,
}
STEP = Lifecycle(
    "step",
    {
        StepState.PENDING: {
            StepEvent.BEGIN: StepState.RUNNING,
            StepEvent.SKIP: StepState.SKIPPED,
            StepEvent.CARRY: StepState.COMPLETE,
            **_STEP_ENDS,
        },
        StepState.RUNNING: {
            StepEvent.COMPLETE: StepState.COMPLETE,
            StepEvent.REJECT: StepState.REJECTED,
            **_STEP_ENDS,
        },
        # Whether an answer is accepted is judged when it is there.
        StepState.COMPLETE: {StepEvent.REJECT: StepState.REJECTED, StepEvent.REDO: StepState.PENDING},
        StepState.STOPPED: {StepEvent.REDO: StepState.PENDING},
    },
)

_LIVE = frozenset({RunState.QUEUED, RunState.RUNNING})


class RequestState(StrEnum):
    """Where something stands that was asked of a live run."""

    ASKED = "asked"  # its file is there; nobody has answered
    QUEUED = "queued"  # known, to be carried out later: when the run begins, or when the model can be told
    ACCEPTED = "accepted"  # being carried out
    DELIVERED = "delivered"  # the model was given it
    REFUSED = "refused"
    TOO_LATE = "too-late"


class RequestEvent(StrEnum):
    QUEUE = "queue"
    ACCEPT = "accept"
    DELIVER = "deliver"
    REFUSE = "refuse"
    MISS = "miss"  # the run ended first


_HEARD = {
    RequestEvent.QUEUE: RequestState.QUEUED,
    RequestEvent.ACCEPT: RequestState.ACCEPTED,
    RequestEvent.REFUSE: RequestState.REFUSED,
    RequestEvent.MISS: RequestState.TOO_LATE,
}
REQUEST = Lifecycle(
    "request",
    {
        RequestState.ASKED: _HEARD,
        # What waited for the run to begin is heard anew by its runner.
        RequestState.QUEUED: {**_HEARD, RequestEvent.DELIVER: RequestState.DELIVERED},
    },
)


class QuestionState(StrEnum):
    """Where a question to the person stands."""

    OPEN = "open"
    ANSWERED = "answered"
    CLOSED = "closed"  # nobody waits any more


class QuestionEvent(StrEnum):
    ANSWER = "answer"
    CLOSE = "close"


QUESTION = Lifecycle(
    "question",
    {
        QuestionState.OPEN: {
            QuestionEvent.ANSWER: QuestionState.ANSWERED,
            QuestionEvent.CLOSE: QuestionState.CLOSED,
        },
    },
)
