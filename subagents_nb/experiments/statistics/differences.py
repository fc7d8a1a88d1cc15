"""Differences of two groups, each with an interval and how likely it is where there is none. Pure arithmetic.

Over cases a difference is *paired*: each case of one group against the same of the other. Where one case alone was
repeated, the repeats of one group have nothing to do with those of the other: they are two samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from subagents_nb.experiments.statistics.distributions import (
    binomial_tails,
    hypergeometric_tails,
    t_quantile,
    t_tails,
    z_quantile,
)
from subagents_nb.experiments.statistics.estimates import Estimate, is_share, spread, standard_error, summary, wilson

EQUAL = "the same in each pair"


def paired(mine: Sequence[float], theirs: Sequence[float], clusters: Sequence[str], *, share: bool) -> Estimate:
    """Return the mean of the differences of pairs.

    Pairs of 0 and 1 get Tango's score interval and McNemar's exact test, others Student's t, with the error of the
    clusters. Where all pairs differ by the same the sign test decides, which needs no spread.
    """
    kept = [
        (a, b, cluster)
        for a, b, cluster in zip(mine, theirs, clusters, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]
    apart = [a - b for a, b, _ in kept]
    found = summary(apart)
    lost = len(mine) - len(kept)
    if found.mean is None:
        return Estimate(0, None, method="nothing in common", nonfinite=lost)
    groups = [cluster for _, _, cluster in kept]
    clustered = len(set(groups)) < found.n
    if share and not clustered and is_share([*(a for a, _, _ in kept), *(b for _, b, _ in kept)]):
        won, gone = sum(one > 0 for one in apart), sum(one < 0 for one in apart)
        low, high = tango(won, gone, found.n)
        p = binomial_tails(won, won + gone)
        return Estimate(found.n, found.mean, found.sd, low, high, "Tango", lost, p, "McNemar's exact test")
    number = len(set(groups))
    if found.sd is None or number < 2:
        return Estimate(found.n, found.mean, found.sd, method="one alone has no spread", nonfinite=lost)
    if found.sd == 0:
        p = 1.0 if found.mean == 0 else binomial_tails(0, number)
        return Estimate(found.n, found.mean, 0.0, method=EQUAL, nonfinite=lost, p=p, test="the sign test")
    error, freedom = standard_error(apart, groups)
    low, high, p = _by_t(found.mean, error, freedom, limit=1.0 if share else math.inf)
    method = f"paired t over {number} clusters" if clustered else "paired t"
    return Estimate(found.n, found.mean, found.sd, low, high, method, lost, p, method)


def separate(mine: Sequence[float], theirs: Sequence[float], *, share: bool) -> Estimate:
    """Return the difference of two samples that have nothing to do with one another; `n` is that of the smaller one.

    Shares get Newcombe's interval of two Wilson intervals and Fisher's exact test, others Welch's t. Two samples
    without a spread are judged by how likely it is that the values of one all stand above those of the other.
    """
    one, other = summary(mine), summary(theirs)
    n, lost = min(one.n, other.n), one.nonfinite + other.nonfinite
    if one.mean is None or other.mean is None:
        return Estimate(0, None, method="nothing in common", nonfinite=lost)
    mean = one.mean - other.mean
    if share:
        hits, other_hits = round(one.mean * one.n), round(other.mean * other.n)
        (low, high), (other_low, other_high) = wilson(hits, one.n), wilson(other_hits, other.n)
        below = math.hypot(one.mean - low, other_high - other.mean)
        above = math.hypot(high - one.mean, other.mean - other_low)
        p = hypergeometric_tails(hits, one.n, other_hits, other.n)
        return Estimate(n, mean, None, mean - below, mean + above, "Newcombe", lost, p, "Fisher's exact test")
    if one.sd is None or other.sd is None:
        return Estimate(n, mean, method="one alone has no spread", nonfinite=lost)
    part, other_part = one.sd**2 / one.n, other.sd**2 / other.n
    if part + other_part == 0:
        p = 1.0 if mean == 0 else min(1.0, 2 / math.comb(one.n + other.n, one.n))
        return Estimate(n, mean, method="all are equal", nonfinite=lost, p=p, test="the rank test")
    freedom = (part + other_part) ** 2 / (part**2 / (one.n - 1) + other_part**2 / (other.n - 1))
    low, high, p = _by_t(mean, math.sqrt(part + other_part), freedom)
    return Estimate(n, mean, None, low, high, "Welch's t", lost, p, "Welch's t")


def ratio(mine: Sequence[float], theirs: Sequence[float], clusters: Sequence[str] | None) -> Estimate | None:
    """Return how many times as much one group took, by t over logarithms; None where something took nothing.

    With clusters the values are pairs. It is a ratio of geometric means: a single slow run moves it little.
    """
    if not all(value > 0 and math.isfinite(value) for value in (*mine, *theirs)):
        return None
    logs, other_logs = list(map(math.log, mine)), list(map(math.log, theirs))
    found = (
        separate(logs, other_logs, share=False) if clusters is None else paired(logs, other_logs, clusters, share=False)
    )
    if found.mean is None:
        return None
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return Estimate(found.n, math.exp(found.mean), found.sd, low, high, f"{found.method} of logarithms", 0, found.p)


def tango(won: int, gone: int, n: int) -> tuple[float, float]:
    """Return Tango's score interval (1998) of the difference of two paired shares."""
    z = z_quantile()

    def score(apart: float) -> float:
        a, b, c = 2 * n, -won - gone + (2 * n - won + gone) * apart, -gone * apart * (1 - apart)
        lost = (math.sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)
        variance = n * (2 * lost + apart * (1 - apart))
        if variance <= 0:
            return 0.0 if won - gone == n * apart else math.copysign(math.inf, won - gone - n * apart)
        return (won - gone - n * apart) / math.sqrt(variance)

    def end(bound: float, inside: float, outside: float) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if abs(score(middle)) <= bound else (inside, middle)
        return (inside + outside) / 2

    mean = (won - gone) / n
    return end(z, mean, -1.0), end(z, mean, 1.0)


def holm(chances: Mapping[int, float]) -> dict[int, float]:
    """Return each probability as it counts beside the others (Holm 1979): no word too many in 95 of 100 tables."""
    adjusted: dict[int, float] = {}
    reached = 0.0
    for place, key in enumerate(sorted(chances, key=lambda key: chances[key])):
        reached = max(reached, min(1.0, chances[key] * (len(chances) - place)))
        adjusted[key] = reached
    return adjusted


def cases_needed(sd: float, apart: float, *, comparisons: int = 1, power: float = 0.8) -> int:
    """Return how many cases tell a difference apart in so many of hundred experiments, by the normal distribution."""
    return math.ceil((_reach(comparisons, power) * sd / apart) ** 2 - 1e-9)


def told_apart(sd: float, n: int, *, comparisons: int = 1, power: float = 0.8) -> float:
    """Return which difference so many cases tell apart."""
    return _reach(comparisons, power) * sd / math.sqrt(n)


def within(mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float | None:
    """Return how much of the variance of the differences the repeats make; None where nothing was repeated."""
    parts = [
        sum((spread(values) or 0.0) ** 2 / len(values) for values in pair)
        for pair in zip(mine, theirs, strict=True)
        if all(len(values) > 1 for values in pair)
    ]
    return math.fsum(parts) / len(parts) if parts else None


def _reach(comparisons: int, power: float) -> float:
    return z_quantile(1 - 0.05 / max(1, comparisons)) + z_quantile(2 * power - 1)


def _by_t(mean: float, error: float, freedom: float, *, limit: float = math.inf) -> tuple[float, float, float]:
    reach = t_quantile(freedom) * error
    return max(-limit, mean - reach), min(limit, mean + reach), t_tails(mean / error, freedom)
