"""Means and how sure they are. Pure arithmetic; every interval says by which method it was made.

The values are those of separate units: cases, each the mean of its repeats, or the repeats of one case. Units that
share a cluster (a document, a patient) are no separate ones: the error is that of the clusters.

A share gets a Wilson interval; where its units are means of repeats or in clusters, by the number of independent
judgements that their spread amounts to (Korn and Graubard 1998), so that it stays between 0 and 1. Everything else gets
Student's t, and what is skewed, as money and time are, the bootstrap of t (Efron): resampled by a fixed seed.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from subagents_nb.experiments.statistics.distributions import t_quantile, z_quantile

_SAMPLES = 999
_FEWEST, _MOST = 4, 200  # units that are resampled; of more the mean is as good as normal
_SAME = 1e-12  # a spread below this part of the mean is rounding


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of some numbers. What is not finite is counted and left out of the rest."""

    n: int  # the finite ones
    mean: float | None  # None: there are none
    sd: float | None = None  # of the sample; None with fewer than two
    low: float | None = None
    high: float | None = None
    method: str = ""  # of the interval; why there is none
    nonfinite: int = 0
    p: float | None = None  # of a difference: how likely one at least as large is where there is none
    test: str = ""  # by which `p` was found

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is all above or all below zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def is_share(values: Iterable[float]) -> bool:
    """Say whether these are all the judgements of a share: each of them is 0 or 1, so that a mean is a part of them."""
    finite = {value for value in values if math.isfinite(value)}
    return bool(finite) and finite <= {0.0, 1.0}


def summary(values: Sequence[float]) -> Estimate:
    """Return mean, spread and number, without an interval."""
    finite = [value for value in values if math.isfinite(value)]
    left = len(values) - len(finite)
    if not finite:
        return Estimate(0, None, method="nothing judged", nonfinite=left)
    return Estimate(len(finite), math.fsum(finite) / len(finite), spread(finite), nonfinite=left)


def estimate(
    values: Sequence[float],
    *,
    share: bool = False,
    skewed: bool = False,
    judgements: int | None = None,
    clusters: Sequence[str] | None = None,
) -> Estimate:
    """Return mean, spread and 95 % interval.

    Args:
        values: of each unit one.
        share: they are shares: of single judgements 0 or 1, of repeats something between.
        skewed: they are as money and time are.
        judgements: how many there were, where a unit is the mean of several.
        clusters: of each unit, with which it belongs together.
    """
    found = summary(values)
    if found.mean is None:
        return found
    pairs = [(v, c) for v, c in zip(values, clusters or map(str, range(len(values))), strict=True) if math.isfinite(v)]
    finite, groups = [v for v, _ in pairs], [c for _, c in pairs]
    clustered = len(set(groups)) < found.n
    if share and not clustered and is_share(finite):
        return _between(found, *wilson(sum(finite), found.n), "Wilson")
    if found.sd is None or len(set(groups)) < 2:
        return replace(found, method="one alone has no spread")
    error, freedom = standard_error(finite, groups)
    where = f" over {freedom + 1} clusters" if clustered else ""
    if share:
        n = effective(found.mean, error, freedom, most=judgements or found.n, units=freedom + 1)
        return _between(found, *wilson(found.mean * n, n), f"Wilson{where or ' over case means'}")
    if found.sd == 0:
        return replace(found, method="all are equal")
    if skewed and not clustered and _FEWEST <= found.n <= _MOST:
        return _between(found, *bootstrap(finite), "bootstrap of t")
    reach = t_quantile(freedom) * error
    return _between(found, found.mean - reach, found.mean + reach, f"t{where}")


def _between(found: Estimate, low: float, high: float, method: str) -> Estimate:
    return replace(found, low=low, high=high, method=method)


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a sample; 0 where it is rounding alone, None of one value."""
    if len(values) < 2:
        return None
    sd = statistics.stdev(values)
    return 0.0 if sd <= _SAME * max(map(abs, values)) else sd


def standard_error(values: Sequence[float], clusters: Sequence[str]) -> tuple[float, int]:
    """Return the standard error of a mean, and its degrees of freedom; units of a cluster count together.

    With each in a cluster of its own it is the usual one: the deviation divided by the root of the number.
    """
    mean = math.fsum(values) / len(values)
    sums: dict[str, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    number = len(sums)
    square = math.fsum(one * one for one in sums.values()) * number / (number - 1)
    return math.sqrt(square) / len(values), number - 1


def effective(share: float, error: float, freedom: int, *, most: int, units: int) -> float:
    """Return to how many independent judgements a share with this error amounts, with few units to fewer."""
    inside = 0 < share < 1
    n = min(share * (1 - share) / (error * error), most) if inside and error > 0 else float(most if inside else units)
    return n * (z_quantile() / t_quantile(freedom)) ** 2


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the Wilson interval of a share."""
    z = z_quantile()
    share, square = hits / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    reach = z / (1 + square / n) * math.sqrt(max(0.0, share * (1 - share) / n + square / (4 * n * n)))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a mean by the bootstrap of t, the same for the same values."""
    n, mean, error = len(values), math.fsum(values) / len(values), statistics.stdev(values) / math.sqrt(len(values))
    chance = random.Random(0)  # noqa: S311 - a fixed seed: a table made again is the same
    found = []
    for _ in range(_SAMPLES):
        sample = chance.choices(values, k=n)
        total, squares = sum(sample), sum(value * value for value in sample)
        variance = (squares - total * total / n) / (n - 1)
        if variance > _SAME * squares:
            found.append((total / n - mean) / math.sqrt(variance / n))
    found.sort()
    if len(found) < _SAMPLES // 2:  # most samples hold one value alone
        reach = t_quantile(n - 1) * error
        return mean - reach, mean + reach
    tail = round(0.025 * (len(found) + 1)) - 1
    return mean - found[-1 - tail] * error, mean - found[tail] * error
