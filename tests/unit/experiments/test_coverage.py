"""A few hundred experiments of known truth; soak_coverage.py has two thousand of each design."""

from __future__ import annotations

import math

import pytest

from benchmarks.coverage import Design, designs, measured

ROUNDS = 250
SLACK = 3 * math.sqrt(0.05 * 0.95 / ROUNDS)
CHOSEN = [
    "share, 10 cases",
    "share, 20 cases × 10, their own chances Beta(0.5, 0.5)",
    "share, 30 clusters of 2 to 6 cases",
    "values, 5 cases",
    "difference of shares, 20 cases",
    "difference of shares, 20 cases × 10",
    "5 equal settings, 20 cases × 5",
]


@pytest.mark.parametrize("design", [one for one in designs() if one.name in CHOSEN], ids=lambda one: one.name)
def test_what_is_said_with_95_percent_holds_in_so_many(design: Design) -> None:
    found = measured(design, ROUNDS)

    assert design.low - SLACK <= found.share <= design.high + SLACK, found
