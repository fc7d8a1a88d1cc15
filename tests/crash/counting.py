"""What was planned and what ran, by test; and how often rare races are tried here and in the long lane."""

from __future__ import annotations

import os
from dataclasses import dataclass

SOAK = os.environ.get("SOAK") == "1"


def times(here: int, soak: int) -> int:
    """Return how often something is tried: `here` with every change, `soak` in the long lane (`make soak`)."""
    return soak if SOAK else here


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
