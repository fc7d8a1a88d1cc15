"""Listen for what is asked of a live run, keep its deadline, and force the end when the work won't let go.

A thread of its own: it works while the model is silent and while the event loop is stuck.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from subagents_nb.domain.records import Actor, ControlAnswer, ControlRequest, Reason
from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import duration
from subagents_nb.errors import Unreadable
from subagents_nb.runner.journal import Journal
from subagents_nb.store.clock import utc_now
from subagents_nb.store.writer import RunWriter

POLL_S = 0.1
GRACE_S = 3.0
_STATES_OF_MIND = ("thinking", "answering", "waiting for the model")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a run is being ended before its work was done; the first cause wins."""

    state: RunState
    reason: Reason
    actor: Actor
    message: str


def stopped_by(request: ControlRequest) -> Cause:
    """Return the cause that a stop request makes."""
    who = f" from {request.asked_by}" if request.asked_by else ""
    why = f": {request.reason}" if request.reason else ""
    return Cause(RunState.STOPPED, "stopped", "person", f"Stopped on request{who}{why}.")


def past_deadline(timeout_s: float, activity: str) -> Cause:
    """Return the cause that a passed deadline makes."""
    doing = ""
    if activity in _STATES_OF_MIND:
        doing = f" while it was {activity}"
    elif activity:
        doing = f" while the tool {activity} was at work"
    text = f"The run passed its deadline of {duration(timeout_s)}{doing}. Give it more with --timeout."
    return Cause(RunState.FAILED, "timeout", "deadline", text)


SIGNALLED = Cause(RunState.STOPPED, "signal", "outside", "A signal from outside (SIGTERM) ended the run.")


class Control:
    """The control thread of one runner."""

    def __init__(
        self,
        writer: RunWriter,
        journal: Journal,
        *,
        timeout_s: float | None,
        cancel: Callable[[], None],
        force: Callable[[Cause], None],
    ) -> None:
        self._writer = writer
        self._journal = journal
        self._timeout_s = timeout_s
        self._cancel = cancel
        self._force = force
        self._seen: set[str] = set()
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._since = 0.0
        self.cause: Cause | None = None
        self._thread = threading.Thread(target=self._watch, name="control", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """The work is over: answer late requests no more and force nothing."""
        self._over.set()

    def end(self, cause: Cause) -> bool:
        """End the work for this cause; False if it is being ended for another already."""
        with self._guard:
            if self.cause is not None or self._over.is_set():
                return False
            self.cause = cause
            self._since = time.monotonic()
        if cause.state is RunState.STOPPED:
            self._journal.stopping()
        self._cancel()
        return True

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            self._hear()
            if self._timeout_s is not None and self._journal.elapsed_s >= self._timeout_s:
                self.end(past_deadline(self._timeout_s, self._journal.activity))
            self._journal.flush()
            if self.cause is not None and time.monotonic() - self._since > GRACE_S:
                self._force(self.cause)
                return

    def _hear(self) -> None:
        for request in self._writer.requests(self._seen):
            if isinstance(request, Unreadable):
                continue  # a damaged request is never widened into another one; its writer sees no answer
            accepted = self.end(stopped_by(request))
            already = self.cause is not None and self.cause.state is RunState.STOPPED
            answer = ControlAnswer(
                run_id=request.run_id,
                request_id=request.request_id,
                outcome="accepted" if accepted or already else "too-late",
                text="" if accepted else "the run is already ending",
                answered_at=utc_now(),
            )
            self._answer(answer)

    def _answer(self, answer: ControlAnswer) -> None:
        try:
            self._writer.answer(answer)
        except OSError:
            return  # nobody may be waiting; the run's state says it as well
