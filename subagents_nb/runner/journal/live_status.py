"""The status of a run that lives: what it shows beside its steps, and when it is written."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.runs.control import KEPT_RECEIPTS, Retuned, SteerReceipt
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.tree_rows import TreeRow, changes_of
from subagents_nb.domain.values.usage import Usage
from subagents_nb.runner.journal.eventlog import EventLog
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.writer import RunWriter

_KEPT_NOTES = 50


class LiveStatus:
    """The status as it stands. A milestone is written at once, all else when the journal says so; both hold `guard`."""

    def __init__(
        self,
        writer: RunWriter,
        first: RunStatus,
        clock: WorkClock,
        *,
        steps: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._steps = steps  # the fields that follow from the steps
        self._refused = False  # the disk took no status the last time
        self.events = EventLog(writer, clock)
        self.guard = threading.RLock()
        self.current = first
        self.over = False  # the run has its last word
        self.dirty = False
        self.written = 0.0

    def milestone(self, kind: str, fields: Mapping[str, Any], **update: Any) -> None:
        """Change what is shown and bring it to the device, with an event that names the change."""
        with self.guard:
            if self.over:
                return
            self.update(**update)
            self.events.line(kind, fields, keep=True)
            self.write(milestone=True)

    def update(self, **update: Any) -> None:
        """Change what is shown with the next write."""
        self.current = self.current.model_copy(update=update)
        self.dirty = True

    def note(self, text: str) -> None:
        """Add a quiet remark to the run, once; it is shown with the run and kept in its result."""
        with self.guard:
            if text not in self.current.notes and len(self.current.notes) < _KEPT_NOTES:
                self.update(notes=(*self.current.notes, text))

    def budget(self, budget: UsageBudget | None, used: Usage) -> None:
        """Show how far the usage has come against the budget in force; an amount that was reached stays noted."""
        with self.guard:
            if budget is None or self.over:
                return
            state, text = budget.reached(used)
            if text and state != self.current.budget:
                self.note(text)
            if (state, budget) != (self.current.budget, self.current.usage_budget):
                self.milestone("budget", {"state": state}, budget=state, usage_budget=budget)

    def retuned(self, change: Retuned) -> None:
        """Record new limits beside the contract."""
        fields = {"by": change.by, "changes": change.changes}
        shown = {name: value for name, value in change.changes.items() if name in RunStatus.model_fields}
        self.milestone("retuned", fields, retunes=(*self.current.retunes, change), **shown)

    def steering(self, receipt: SteerReceipt) -> None:
        """Record where a steering message stands; the last twenty are shown."""
        fields = {"request": receipt.request_id, "outcome": receipt.outcome}
        with self.guard:
            others = tuple(r for r in self.current.steering if r.request_id != receipt.request_id)
            self.milestone("steering", fields, steering=(*others, receipt)[-KEPT_RECEIPTS:])

    def tree(self, rows: tuple[TreeRow, ...]) -> None:
        """Show how the runs below stand; that one begins, ends or asks is an event."""
        with self.guard:
            before = self.current.tree
            if rows == before or self.over:
                return
            if changes_of(rows) == changes_of(before):
                self.update(tree=rows)
                return
            live = sum(not row.state.ended for row in rows)
            self.milestone("tree", {"runs": len(rows), "live": live}, tree=rows)

    def write(self, *, milestone: bool) -> None:
        """Write it, with its steps as they stand; a disk that refuses progress is no reason to end the work."""
        self.written = time.monotonic()
        self.update(
            seq=self.current.seq + 1,
            updated_at=utc_now(),
            elapsed_s=round(self._clock.worked_s, 3),
            waited_s=round(self._clock.waited_s, 3),
            waits=self._clock.is_waiting,
            **self._steps(),
        )
        self.dirty = False
        try:
            self._writer.status(self.current, milestone=milestone)
            if milestone:
                self._writer.events.sync()
            self._refused = False
        except OSError as error:
            # Progress is dropped and the work goes on; the result itself is insisted on.
            if not self._refused:
                print(f"status not written: {error}", file=sys.stderr, flush=True)  # noqa: T201
            self._refused = True
