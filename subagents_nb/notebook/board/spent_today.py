"""What the runs of this day have used, whether a board lists them or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.domain.values.ids import launched_ms
from subagents_nb.store import FileRuns, StoreHome

_AT_ONCE = 100  # runs that are read in one look; the rest follows with the next


class SpentToday:
    """Adds up; each run that has ended is read once."""

    def __init__(self, home: StoreHome) -> None:
        self._reader = FileRuns(home)
        self._ended: dict[str, tuple[int, int, float]] = {}

    def sums(self, known: Mapping[str, Snapshot]) -> dict[str, Any]:
        """Return how many runs there were today, and their tokens and money; `known` need not be read."""
        left, count, total = _AT_ONCE, 0, (0, 0, 0.0)
        for run_id in self._of_today():
            count += 1
            used = self._ended.get(run_id)
            if used is None:
                snapshot = known.get(run_id)
                if snapshot is None:
                    if left <= 0:
                        continue
                    left, snapshot = left - 1, self._reader.snapshot(run_id)
                usage = snapshot.usage
                used = usage.input_tokens, usage.output_tokens, usage.cost_usd or 0.0
                if snapshot.ended:
                    self._ended[run_id] = used
            total = total[0] + used[0], total[1] + used[1], total[2] + used[2]
        return {"today": count, "sent": total[0], "got": total[1], "cost": words.cost(total[2] or None)}

    def _of_today(self) -> Iterator[str]:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000
        for run_id in self._reader.ids():
            if launched_ms(run_id) < midnight:
                return
            yield run_id
