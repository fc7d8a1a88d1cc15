"""How long a sweep still takes and what it will have cost, by what its runs took so far. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from subagents_nb.experiments.statistics.estimates import spread
from subagents_nb.experiments.statistics.reducers import mean

_REACH = 1.28  # standard deviations to either side: four of five such spans hold
_LEAST = 0.1  # of the mean: so much a run is thought to take still that takes longer than others did


class Pace(NamedTuple):
    """What the runs of one setting took of something, time or money: those that ended, those at work so far."""

    ended: Sequence[float]
    live: Sequence[float] = ()
    waiting: int = 0


class Span(NamedTuple):
    """What is likely, and from where to where it may be."""

    low: float
    likely: float
    high: float


def time_left(paces: Sequence[Pace], at_once: int) -> Span | None:
    """Return in how many seconds all will have ended, `at_once` at a time; None where nobody can know.

    A setting of which no run has ended is thought to be like the others. No run ends sooner than by itself.
    """
    left = _left(paces)
    if left is None or at_once < 1:
        return None
    likely = max(left.total / at_once, left.longest)
    reach = _REACH * math.sqrt(left.variance) / at_once
    return Span(max(0.0, likely - reach), likely, likely + reach)


def cost_expected(paces: Sequence[Pace]) -> Span | None:
    """Return what all will have cost, those that ended too; None while the cost of no run is known.

    What is spent already is the least.
    """
    left = cost_left(paces)
    if left is None:
        return None
    spent = math.fsum(value for pace in paces for value in (*pace.ended, *pace.live))
    return Span(spent + left.low, spent + left.likely, spent + left.high)


def cost_left(paces: Sequence[Pace]) -> Span | None:
    """Return what those that have not ended will still cost; None while the cost of no run is known."""
    left = _left(paces)
    if left is None:
        return None
    reach = _REACH * math.sqrt(left.variance)
    return Span(max(0.0, left.total - reach), left.total, left.total + reach)


class _Left(NamedTuple):
    total: float
    variance: float
    longest: float


def _left(paces: Sequence[Pace]) -> _Left | None:
    every = [value for pace in paces for value in pace.ended]
    if not every:
        return None
    total = variance = longest = 0.0
    for pace in paces:
        number = len(pace.live) + pace.waiting
        if not number:
            continue
        known = pace.ended or every
        usual = mean(known)
        varies = spread(known) if len(known) > 1 else spread(every) if len(every) > 1 else usual / 2
        rest = [max(usual - so_far, _LEAST * usual) for so_far in pace.live]
        total += math.fsum(rest) + pace.waiting * usual
        # Each run by itself, and how well the mean of so few is known.
        variance += number * (varies or 0.0) ** 2 + (number * (varies or 0.0)) ** 2 / len(known)
        longest = max(longest, *rest, usual if pace.waiting else 0.0)
    return _Left(total, variance, longest)
