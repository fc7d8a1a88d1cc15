"""Means and how sure they are. Pure arithmetic; every interval says by which method it was made.

A share, of judgements that are all 0 or 1, gets a Wilson interval, everything else one by Student's t over what was
judged separately: cases, else repetitions. A difference to a baseline is paired: only what both have, subtracted one by
one.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95
_MANY = 1_000_000


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

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is all above or all below zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def is_share(values: Iterable[float]) -> bool:
    """Say whether these are all the judgements of a share: each of them is 0 or 1, so that a mean is a part of them."""
    finite = {value for value in values if math.isfinite(value)}
    return bool(finite) and finite <= {0.0, 1.0}


def estimate(values: Sequence[float], *, share: bool = False, paired: bool = False) -> Estimate:
    """Return mean, spread and 95 % interval; `share` and `paired` say what the values are, 0 or 1, or differences."""
    finite = [value for value in values if math.isfinite(value)]
    left = len(values) - len(finite)
    n = len(finite)
    if n == 0:
        return Estimate(0, None, method="nothing judged", nonfinite=left)
    mean = math.fsum(finite) / n
    sd = statistics.stdev(finite) if n > 1 else None
    if share:
        low, high = wilson(round(sum(finite)), n)
        return Estimate(n, mean, sd, low, high, "Wilson", left)
    if sd is None:
        return Estimate(n, mean, method="one alone has no spread", nonfinite=left)
    if sd == 0:
        return Estimate(n, mean, sd, method="all are equal", nonfinite=left)
    reach = t_quantile(n - 1) * sd / math.sqrt(n)
    return Estimate(n, mean, sd, mean - reach, mean + reach, "paired t" if paired else "t", left)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the Wilson interval of a share."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share, square = hits / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    reach = z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, middle - reach), min(1.0, middle + reach)


@functools.lru_cache(maxsize=1024)
def t_quantile(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t with so many degrees of freedom, to nine digits."""
    if freedom > _MANY:
        return NormalDist().inv_cdf(0.5 + LEVEL / 2)
    low, high = 0.0, 1000.0
    for _ in range(80):
        middle = (low + high) / 2
        # Two-sided tail: the regularized incomplete beta function of v / (v + t²).
        if _beta(freedom / 2, 0.5, freedom / (freedom + middle * middle)) > 1 - LEVEL:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    head = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return head * value / a


def _away(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
