"""What is appended to a live chain: noted on disk before it is promised, numbered when the chain comes to it."""

from __future__ import annotations

import sys
import threading
from collections import deque

from subagents_nb.domain.plans.plan import LaunchPlan, output_names
from subagents_nb.domain.runs.control import AppendedItems, Appendix
from subagents_nb.store.runs.writer import RunWriter

AT_ITS_END = "the chain is at its end already"


class Appendices:
    """The appended items of one chain. `put` belongs to the control thread, `take` to the event loop."""

    def __init__(self, plan: LaunchPlan, writer: RunWriter) -> None:
        self._writer = writer
        self._guard = threading.Lock()
        self._names = output_names(plan.items, plan.steps)
        self._record = AppendedItems(run_id=plan.run_id)
        self._waiting: deque[Appendix] = deque()
        self._closed = False

    def put(self, more: Appendix) -> str | None:
        """Take items in behind the last one; return why not, if not."""
        names = more.names
        with self._guard:
            if self._closed:
                return AT_ITS_END
            if taken := sorted(names & self._names):
                return f"there is an output {taken[0]!r} already"
            record = self._record.model_copy(update={"waiting": (*self._record.waiting, more)})
            try:
                self._writer.appended(record)
            except OSError as error:
                return f"it could not be written down ({error.strerror or error})"
            self._record = record
            self._names |= names
            self._waiting.append(more)
            return None

    @property
    def waiting(self) -> int:
        """Return how many appendices wait to be taken in."""
        return len(self._waiting)

    def close(self) -> None:
        """Take nothing in any more."""
        with self._guard:
            self._closed = True

    def take(self, base: int, *, last: bool) -> Appendix | None:
        """Return the next items with their steps numbered from `base`; None if none waits, which closes after `last`.

        That is under the same guard, so that nothing is taken in and then forgotten.
        """
        with self._guard:
            if not self._waiting:
                self._closed = self._closed or last
                return None
            more = self._waiting.popleft().numbered(lambda index: index + base)
            before = self._record.taken
            taken = more if before is None else before.then(more)
            self._record = self._record.model_copy(update={"taken": taken, "waiting": tuple(self._waiting)})
            try:
                self._writer.appended(self._record)
            except OSError as error:  # the work goes on; only a resume of the whole chain will say that it can't tell
                print(f"what was appended was not written down: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return more
