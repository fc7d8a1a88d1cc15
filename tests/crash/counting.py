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

    @property
    def number(self) -> int:
        """Return how many cases that is, at least."""
        return self.cases or self.at_least

    def fault(self, ran: int) -> str:
        """Say what is wrong if so many cases ran; nothing if that is as planned."""
        if ran < self.at_least if self.at_least else ran != self.cases:
            return f"row {self.row}: {ran} of {self.number} cases ran"
        return ""


@dataclass(slots=True)
class Ledger:
    whole: bool = False  # the whole folder is run, not a part of it
    everywhere: bool = False  # and so is every other file with a row of the matrix
    narrowed: bool = False  # single tests of a file are run
    planned: dict[str, Planned] = field(default_factory=dict)
    elsewhere: dict[str, Planned] = field(default_factory=dict)  # in other folders: such a test counts for itself
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
            fault = plan.fault(self._ran[test])
            if fault and test not in self.left_out:
                found.append(f"{fault} in {test}")
        return found

    def rows(self) -> dict[int, int]:
        """Return how many cases were planned for each row, here and elsewhere."""
        totals: dict[int, int] = defaultdict(int)
        for plan in (*self.planned.values(), *self.elsewhere.values()):
            totals[plan.row] += plan.number
        return dict(totals)


LEDGER = Ledger()
