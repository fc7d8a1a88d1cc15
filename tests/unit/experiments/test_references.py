"""Intervals and tests against scipy 1.17.1 and statsmodels 0.15.0: each figure stands with the call that gave it."""

from __future__ import annotations

import pytest

from subagents_nb.experiments.statistics.differences import cases_needed, holm, paired, separate, tango
from subagents_nb.experiments.statistics.distributions import (
    binomial_tails,
    hypergeometric_tails,
    t_quantile,
    t_tails,
)
from subagents_nb.experiments.statistics.estimates import estimate, wilson

EXACT = 1e-9


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),  # proportion_confint(hits, n, method="wilson")
    [
        (0, 5, 0.0, 0.43448246478317487),
        (3, 7, 0.15821985525146964, 0.7495416354723428),
        (5, 10, 0.23659309051256394, 0.7634069094874361),
        (20, 20, 0.8388748419471804, 1.0),
        (171, 500, 0.3017655066658599, 0.38464378491999074),
    ],
)
def test_a_share(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == (pytest.approx(low, abs=EXACT), pytest.approx(high, abs=EXACT))


def test_students_t() -> None:
    quantiles = {  # stats.t.ppf(0.975, freedom)
        1: 12.706204736174694,
        2.5: 3.5746548420036817,
        3: 3.1824463052837078,
        7.3: 2.345066736547703,
        30: 2.0422724563012378,
        499: 1.9647293909876886,
    }
    for freedom, quantile in quantiles.items():
        assert t_quantile(freedom) == pytest.approx(quantile, rel=EXACT)
    tails = {(2.1, 3): 0.1265652025496846, (0.4, 9.5): 0.6980021043464311, (5.2, 19): 5.095901151386505e-05}
    for (t, freedom), chance in tails.items():  # 2 * stats.t.sf(t, freedom)
        assert t_tails(t, freedom) == pytest.approx(chance, rel=EXACT)


def test_pairs() -> None:
    before, after = [0.2, 0.5, 0.9, 0.4, 0.75, 0.1], [0.3, 0.55, 0.7, 0.65, 0.95, 0.35]
    found = paired(after, before, list("abcdef"), share=False)  # stats.ttest_rel(after, before)
    assert found.p == pytest.approx(0.1824928234229831, rel=EXACT)
    assert (found.low, found.high) == (
        pytest.approx(-0.07165839154270427, rel=EXACT),
        pytest.approx(0.28832505820937093, rel=EXACT),
    )


def test_two_samples() -> None:
    # stats.ttest_ind(..., equal_var=False)
    found = separate([3.0, 5.0, 4.0, 8.0], [1.0, 2.0, 2.5, 1.5, 2.2], share=False)
    assert found.p == pytest.approx(0.057330861717894664, rel=EXACT)
    assert (found.low, found.high) == (
        pytest.approx(-0.17238439979209952, rel=1e-8),
        pytest.approx(6.492384399792099, rel=EXACT),
    )
    # confint_proportions_2indep(8, 10, 2, 10, method="newcomb", compare="diff")
    shares = separate([1.0] * 8 + [0.0] * 2, [1.0] * 2 + [0.0] * 8, share=True)
    assert (shares.low, shares.high) == (
        pytest.approx(0.161823565114959, rel=EXACT),
        pytest.approx(0.8026820451433557, rel=EXACT),
    )


@pytest.mark.parametrize(
    ("won", "lost", "chance"),  # mcnemar([[0, won], [lost, 0]], exact=True).pvalue
    [(4, 0, 0.125), (8, 2, 0.109375), (30, 0, 1.862645149230957e-09), (5, 5, 1.0), (41, 22, 0.022574972673257185)],
)
def test_pairs_of_right_and_wrong(won: int, lost: int, chance: float) -> None:
    assert binomial_tails(won, won + lost) == pytest.approx(chance, rel=EXACT)


@pytest.mark.parametrize(
    ("hits", "n", "other", "of", "chance"),  # stats.fisher_exact([[hits, n - hits], [other, of - other]]).pvalue
    [
        (8, 10, 2, 10, 0.023014137565221155),
        (5, 5, 0, 5, 0.007936507936507938),
        (3, 7, 6, 9, 0.6145104895104895),
        (40, 60, 25, 55, 0.02513859343158196),
    ],
)
def test_two_shares(hits: int, n: int, other: int, of: int, chance: float) -> None:
    assert hypergeometric_tails(hits, n, other, of) == pytest.approx(chance, rel=EXACT)


def test_clusters() -> None:
    # sm.OLS(values, ones).fit(cov_type="cluster", cov_kwds={"groups": ..., "use_correction": True}, use_t=True)
    found = estimate([0.1, 0.3, -0.2, 0.4, 0.5, 0.05, 0.2, 0.15], clusters=list("aabbbcdd"))
    assert (found.low, found.high) == (
        pytest.approx(0.09671367, abs=1e-8),
        pytest.approx(0.27828633, abs=1e-8),
    )


def test_a_family_of_tests() -> None:
    # multipletests([0.01, 0.04, 0.03, 0.005, 0.2], method="holm")
    found = holm(dict(enumerate([0.01, 0.04, 0.03, 0.005, 0.2])))
    assert [found[place] for place in range(5)] == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.2])


def test_how_many_cases() -> None:
    # (norm.ppf(1 - 0.05 / 2 / comparisons) + norm.ppf(0.8)) ** 2 * 0.3**2 / 0.05**2
    assert cases_needed(0.3, 0.05) == 283 and cases_needed(0.3, 0.05, comparisons=3) == 377


def test_the_score_interval_of_pairs() -> None:
    # The profile likelihood by scipy.optimize: minimize_scalar for what is not asked for, brentq for the ends.
    known = {(9, 3, 40): (-0.02198805, 0.32086533), (7, 2, 25): (-0.03983437, 0.42347071)}
    for (won, lost, n), ends in known.items():
        assert tango(won, lost, n) == pytest.approx(ends, abs=1e-8)
        assert tango(lost, won, n) == pytest.approx((-ends[1], -ends[0]), abs=1e-8)
    assert tango(0, 0, 14) == pytest.approx((-0.21531080, 0.21531080), abs=1e-8)
    assert tango(30, 0, 30)[1] == pytest.approx(1.0)
