"""Student's t, the binomial and the hypergeometric distribution, as much as intervals and tests need of them."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from statistics import NormalDist

LEVEL = 0.95
_MANY = 1_000_000


@functools.lru_cache(maxsize=4096)
def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t with so many degrees of freedom."""
    if freedom > _MANY:
        return z_quantile(level)
    low, high = 0.0, 1000.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(middle, freedom) > 1 - level else (low, middle)
    return (low + high) / 2


def z_quantile(level: float = LEVEL) -> float:
    """Return the two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def t_tails(t: float, freedom: float) -> float:
    """Return how likely Student's t is at least so far from zero, on either side."""
    if not math.isfinite(t):
        return 0.0
    return _beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def binomial_tails(hits: int, n: int) -> float:
    """Return how likely a fair coin gives a result at least so far from the middle, on either side."""
    least = min(hits, n - hits)
    below = sum(math.comb(n, k) for k in range(least + 1))
    return min(1.0, float(Fraction(below, 2 ** (n - 1)))) if n else 1.0


def hypergeometric_tails(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Return Fisher's exact probability that two shares differ at least so much, in either direction."""
    total = hits + other_hits
    lowest, highest = max(0, total - other_n), min(n, total)
    ways = [math.comb(n, k) * math.comb(other_n, total - k) for k in range(lowest, highest + 1)]
    seen = ways[hits - lowest]
    return min(1.0, sum(one for one in ways if one <= seen) / sum(ways))


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
