"""Two thousand experiments of every design that the documentation names. `make soak` runs it; it is not collected."""

from __future__ import annotations

import math

import pytest

from benchmarks.coverage import Design, designs, measured

ROUNDS = 2000
SLACK = 3 * math.sqrt(0.05 * 0.95 / ROUNDS)  # a measured share varies, and there are eighty of them


@pytest.mark.parametrize("design", designs(), ids=lambda design: f"{design.name}: {design.what}")
def test_what_is_said_with_95_percent_holds_in_so_many(design: Design) -> None:
    found = measured(design, ROUNDS)

    assert design.low - SLACK <= found.share <= design.high + SLACK, found
