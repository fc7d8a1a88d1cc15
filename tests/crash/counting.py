"""What was planned and what ran, by test."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Planned:
    """The cases of one test: exactly `cases`, or `at_least` so many."""

    row: int
    cases: int = 0
    at_least: int = 0


@dataclass(slots=True)
class Ledger:
    whole: bool = False  # the whole folder is run, not a part of it
    narrowed: bool = False  # single tests of a file are run
    planned: dict[str, Planned] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    _ran: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def plan(self, test: str, planned: Planned) -> None:
        self.planned[test] = planned

    def ran(self, test: str, n: int) -> None:
        self._ran[test] += n

    def leave_out(self, test: str, why: str) -> None:
        self.left_out[test] = why

    def faults(self) -> list[str]:
        """Return every test that did not run what it planned."""
        found = []
        for test, plan in self.planned.items():
            ran = self._ran[test]
            if test not in self.left_out and (ran < plan.at_least if plan.at_least else ran != plan.cases):
                found.append(f"row {plan.row}: {ran} of {plan.cases or plan.at_least} cases ran in {test}")
        return found

    def rows(self) -> dict[int, int]:
        """Return how many cases were planned for each row."""
        totals: dict[int, int] = defaultdict(int)
        for plan in self.planned.values():
            totals[plan.row] += plan.cases or plan.at_least
        return dict(totals)


LEDGER = Ledger()
