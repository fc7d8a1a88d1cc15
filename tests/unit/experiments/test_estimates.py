"""Statistics against figures known from elsewhere."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.experiments.statistics.distributions import t_quantile
from subagents_nb.experiments.statistics.estimates import estimate, is_share, wilson

NAN, INF = math.nan, math.inf


# From printed tables of Student's t, two-sided 95 %.
@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        (1, 12.7062047),
        (2, 4.3026527),
        (3, 3.1824463),
        (5, 2.5705818),
        (10, 2.2281389),
        (30, 2.0422725),
        (100, 1.9839715),
    ],
)
def test_students_t_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=1e-6)


def test_students_t_becomes_the_normal() -> None:
    assert t_quantile(2_000_000) == pytest.approx(1.959964, abs=1e-6)
    assert t_quantile(900_000) == pytest.approx(1.959964, abs=1e-4)


def test_an_interval_by_t() -> None:
    found = estimate([4.0, 5.0, 6.0, 9.0])  # sd 2.1602469, t(3) 3.1824463: 6 ± 3.43743

    assert (found.n, found.mean, found.method) == (4, 6.0, "t")
    assert found.sd == pytest.approx(2.1602469)
    assert (found.low, found.high) == (pytest.approx(2.5625651, abs=1e-6), pytest.approx(9.4374349, abs=1e-6))


def test_hits_and_misses_get_wilsons_interval() -> None:
    assert wilson(8, 10) == (pytest.approx(0.4901625, abs=1e-6), pytest.approx(0.9433178, abs=1e-6))
    assert wilson(0, 5) == (0.0, pytest.approx(0.4344825, abs=1e-6))
    assert estimate([1.0] * 5, share=True).low == pytest.approx(0.5655175, abs=1e-6)  # never a certainty out of five
    assert estimate([1.0, 0.0, 1.0], share=True).method == "Wilson"
    assert is_share([1.0, 0.0, NAN]) and not is_share([1.0, 0.5]) and not is_share([NAN]) and not is_share([])


def test_what_is_not_finite_is_counted_and_kept_out_of_the_mean() -> None:
    found = estimate([1.0, NAN, 3.0, INF, -INF])

    assert (found.n, found.mean, found.nonfinite) == (2, 2.0, 3)
    assert estimate([NAN]).mean is None and estimate([NAN]).nonfinite == 1


def test_too_little_has_no_interval_and_says_why() -> None:
    assert estimate([]).mean is None and estimate([]).method == "nothing judged"
    alone = estimate([3.0])
    assert (alone.mean, alone.sd, alone.low, alone.method) == (3.0, None, None, "one alone has no spread")
    assert estimate([2.0, 2.0]).method == "all are equal"


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_the_mean_lies_in_its_interval(values: list[float]) -> None:
    found = estimate(values)
    assert found.mean is not None
    if found.low is not None and found.high is not None:
        slack = 1e-9 * max(1.0, abs(found.mean))
        assert found.low - slack <= found.mean <= found.high + slack
