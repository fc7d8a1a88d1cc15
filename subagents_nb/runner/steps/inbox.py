"""Steering messages on their way to the model. Only consumption is delivery."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Sequence

from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest
from subagents_nb.domain.runs.states import RequestEvent, RequestState
from subagents_nb.domain.values.words import one_line
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.writer import RunWriter


class RunInbox:
    """Holds what was sent until the engine takes it, and tells the sender what became of it."""

    def __init__(self, writer: RunWriter, journal: Journal) -> None:
        self._writer = writer
        self._journal = journal
        self._guard = threading.Lock()
        self._waiting: deque[ControlRequest] = deque()
        self._closed = False

    def put(self, request: ControlRequest) -> bool:
        """Take a steering request in; False if the run takes no more."""
        with self._guard:
            if self._closed:
                return False
            # Told before it can be taken: a late "queued" would stand where "delivered" was written.
            self._tell(request, RequestState.ASKED, RequestEvent.QUEUE)
            self._waiting.append(request)
        return True

    def remind(self, text: str) -> None:
        """Put a message of the runner's own before the next request; nobody waits for its receipt."""
        with self._guard:
            if not self._closed:
                own = {"run_id": self._writer.paths.root.name, "request_id": "runner", "asked_at": utc_now()}
                self._waiting.append(ControlRequest(**own, verb="steer", mode="steer", text=text))

    def steers(self) -> Sequence[str]:
        """Take what is to be said before the model's next request."""
        return self._take("steer")

    def follow_ups(self) -> Sequence[str]:
        """Take what is to be said now that the turn is over: follow-ups, and steers that came too late for it."""
        return self._take("steer") + self._take("follow-up")

    def close(self) -> None:
        """The work is over: whatever still waits is told that it came too late."""
        with self._guard:
            self._closed = True
            late = list(self._waiting)
            self._waiting.clear()
        for request in late:
            self._tell(request, RequestState.QUEUED, RequestEvent.MISS)

    def _take(self, mode: str) -> list[str]:
        with self._guard:
            taken = [request for request in self._waiting if request.mode == mode]
            for request in taken:
                self._waiting.remove(request)
        for request in taken:
            self._tell(request, RequestState.QUEUED, RequestEvent.DELIVER)
        return [request.text or "" for request in taken]

    def _tell(self, request: ControlRequest, was: RequestState, event: RequestEvent) -> None:
        if request.request_id == "runner":
            return
        fields = {"run_id": request.run_id, "request_id": request.request_id, "answered_at": utc_now()}
        answer = ControlAnswer.after(was, event, **fields)
        with contextlib.suppress(OSError):  # a full disk keeps the receipt back, not the message
            self._writer.mail.answer(answer)
        self._journal.status.steering(answer.receipt(one_line(self._journal.clean(request.text or ""), 80)))
