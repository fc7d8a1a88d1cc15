"""Figures for reading: two digits that count, money, times that are only likely, and bars on one axis. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from subagents_nb.domain.values.words import count
from subagents_nb.experiments.statistics.estimates import Estimate


class Axis(NamedTuple):
    """From where to where the bars of several estimates go."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value stands, from 0 to 1."""
        wide = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / wide)) if wide > 0 else 0.5


def two_digits(value: float, *, share: bool = False) -> str:
    """Say a number by the two digits that count; a share has two decimals, so that shares stand below one another."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if value == 0 or share:
        return f"{value:.2f}" if share else "0"
    if abs(value) < 0.0001 or abs(value) >= 1e9:
        return f"{value:.1e}"
    if value == int(value):
        return f"{value:,.0f}"
    decimals = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def signed(value: float, *, share: bool = False) -> str:
    """Say a difference with its sign."""
    said = two_digits(value, share=share)
    return f"+{said}" if value > 0 else said


def range_text(found: Estimate, *, share: bool = False) -> str:
    """Say an interval, `0.70 to 0.92`; nothing without one."""
    if found.low is None or found.high is None:
        return ""
    return f"{two_digits(found.low, share=share)} to {two_digits(found.high, share=share)}"


def money(usd: float | None, tokens: int = 0) -> str:
    """Say a cost in cents, or by two digits where it is less; tokens where no cost is known."""
    if usd is None:
        return f"{count(tokens)} tokens" if tokens else ""
    if usd == 0:
        return "$0"
    return f"${usd:,.2f}" if usd >= 0.1 else f"${two_digits(usd)}" if usd >= 0.0001 else "<$0.0001"


def roughly(seconds: float) -> tuple[str, str]:
    """Say a length of time that is only likely: the number, and its unit."""
    if seconds < 90:
        return str(max(5, 5 * round(seconds / 5))), "s"
    if seconds < 5400:
        return str(round(seconds / 60)), "min"
    return f"{seconds / 3600:.1f}", "h"


def axis_of(found: Iterable[Estimate | None], *, share: bool = False, zero: bool = False) -> Axis | None:
    """Return an axis on which these estimates and their intervals stand, and `zero` where it must be seen.

    None where there is nothing to draw.
    """
    known = [each for each in found if each is not None and each.mean is not None]
    ends = [0.0] if zero and known else []
    ends += [end for one in known for end in (one.low, one.mean, one.high) if end is not None and math.isfinite(end)]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    room = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return Axis(max(0.0, low - room), min(1.0, high + room)) if share else Axis(low - room, high + room)
