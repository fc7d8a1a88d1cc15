"""How long a sweep still takes, and what it will have cost."""

from __future__ import annotations

import pytest

from subagents_nb.experiments.sweeps.sweep_outlook import Pace, cost_expected, cost_left, time_left


def test_without_a_run_that_ended_nobody_knows() -> None:
    assert time_left([Pace([], [3.0], 5)], 1) is None and cost_expected([Pace([], [0.1], 5)]) is None
    assert time_left([Pace([1.0])], 0) is None


def test_what_waits_takes_as_long_as_others_of_its_setting_and_so_many_at_once() -> None:
    slow, quick = Pace([60.0, 60.0], waiting=4), Pace([2.0, 2.0], waiting=10)

    left = time_left([slow, quick], 2)
    assert left is not None and left.low == left.likely == left.high == (4 * 60 + 10 * 2) / 2


def test_a_setting_of_which_none_ended_is_thought_to_be_like_the_others() -> None:
    left = time_left([Pace([10.0, 20.0]), Pace([], waiting=2)], 2)

    assert left is not None and left.likely == 15.0 and left.low < 15 < left.high


def test_no_run_ends_sooner_than_by_itself_and_one_at_work_has_something_left() -> None:
    left = time_left([Pace([100.0, 100.0], [20.0, 250.0])], 8)

    assert left is not None and left.likely == 80.0  # not (80 + 10) / 8
    late = time_left([Pace([100.0, 100.0], [250.0])], 1)
    assert late is not None and late.likely == pytest.approx(10.0)
    assert time_left([Pace([100.0])], 3) == (0.0, 0.0, 0.0)


def test_the_span_is_narrower_with_more_runs_that_ended_and_never_below_zero() -> None:
    few, many = time_left([Pace([1.0, 9.0], waiting=3)], 1), time_left([Pace([1.0, 9.0] * 20, waiting=3)], 1)

    assert few is not None and many is not None and few.likely == many.likely == 15.0
    assert few.high - few.low > many.high - many.low and few.low == 0.0


def test_what_is_expected_is_what_was_spent_and_what_is_to_come() -> None:
    expected = cost_expected([Pace([0.25, 0.25], [0.125], 4), Pace([1.0], waiting=1)])

    assert expected is not None and expected.likely == pytest.approx(0.5 + 0.125 + 0.125 + 1.0 + 1.0 + 1.0)
    assert cost_expected([Pace([0.5, 0.5])]) == (1.0, 1.0, 1.0)
    assert expected.low >= 1.625  # what is spent is spent


def test_what_is_missing_costs_what_others_did_without_what_is_spent() -> None:
    paces = [Pace([0.5, 0.5], waiting=4), Pace([0.1, 0.1])]
    assert cost_left(paces) == (2.0, 2.0, 2.0) and cost_left([Pace([], waiting=2)]) is None
    whole = cost_expected(paces)
    assert whole is not None and whole.likely == pytest.approx(3.2)
