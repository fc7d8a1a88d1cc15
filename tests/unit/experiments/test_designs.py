"""Comparisons by the design of the experiment: the case is the unit, and a word is said only where it is no chance."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.rows import RunRow


def answer(model: str, item: Any, value: float | None, repeat: int = 0, **more: Any) -> RunRow:
    fields: dict[str, Any] = {
        "state": "complete" if value is not None else "failed",
        "sweep": "s",
        "repeat": repeat,
        "params": {"model": model, "item": item},
        "task_sha256": f"t{item}",
        "scores": {} if value is None else {("right", None): float(value)},
    }
    return RunRow(f"r-{model}-{item}-{repeat}-{more.get('sweep')}", name="n", **(fields | more))


def compared(rows: list[RunRow], **options: Any) -> Comparison:
    return compare_rows(rows, metrics=["right"], **({"by": ["model"]} | options))


def test_repeats_are_within_their_case_and_count_once() -> None:
    rows = [answer("a", i, i % 2, r) for i in range(10) for r in range(20)]
    rows += [answer("b", i, 1, r) for i in range(10) for r in range(20)]
    found = compared(rows, baseline="model=a")

    known = found.estimate(found[0], "right")
    assert (known.n, known.method) == (10, "Wilson")
    assert (known.low, known.high) == (pytest.approx(0.2365931, abs=1e-7), pytest.approx(0.7634069, abs=1e-7))
    assert found.text.splitlines()[0] == "2 settings, each on 10 cases × 20 repeats; the case is the unit"
    assert found.verdict(found[1], "right") == "unclear" and not found.best("right"), (
        "5 of 10 against none: p is 0.0625"
    )


def test_unequal_repeats_weigh_no_case_more_than_another() -> None:
    rows = [answer("a", 1, 1.0, r) for r in range(9)] + [answer("a", 2, 0.0)]
    rows += [answer("b", item, 1.0) for item in (1, 2)]
    found = compared(rows, baseline="model=a")

    difference = found.difference(found[1], "right")
    assert found.estimate(found[0], "right").mean == 0.5
    assert difference is not None and difference.mean == 0.5, "the difference of the means is the mean difference"
    assert "2 cases × 1 to 9 repeats" in found.text


def test_the_largest_possible_difference_is_better() -> None:
    found = compared([answer(m, i, float(m == "b")) for i in range(30) for m in "ab"], baseline="model=a")

    difference = found.difference(found[1], "right")
    assert difference is not None and difference.p == pytest.approx(2 * 0.5**30) and difference.method == "Tango"
    assert found.verdict(found[1], "right") == "better" and [one.label for one in found.best("right")] == ["model=b"]


def test_where_each_pair_differs_by_the_same_the_sign_test_decides() -> None:
    rows = [answer(m, i, 10.0 + i + 5 * (m == "b")) for i in range(8) for m in "ab"]
    found = compared(rows, baseline="model=a", lower=["right"])

    assert found.verdict(found[1], "right") == "worse" and "+5 in each (n 8) worse" in found.text
    few = compared(rows[:10], baseline="model=a")
    assert few.verdict(few[1], "right") == "unclear", "five of five may be chance: 0.0625"


def test_of_many_groups_a_word_is_said_as_seldom_as_of_one() -> None:
    rows = [answer("base", i, 0.0) for i in range(8)] + [answer("m0", i, float(i < 7)) for i in range(8)]
    alone = compared(rows, baseline="model=base")
    assert alone.verdict(alone[1], "right") == "better"

    rows += [answer(f"m{k}", i, 0.0) for k in range(1, 6) for i in range(8)]
    many = compared(rows, baseline="model=base")
    assert many.verdict(many[1], "right") == "unclear" and "Holm over 6 groups" in many.text
    record = many.records()[1]
    assert record["metrics.right.difference.p"] < 0.05 < record["metrics.right.difference.p_adjusted"]


def test_who_survives_is_not_the_best_and_what_failed_shows_as_wrong() -> None:
    rows = [answer("a", i, float(i < 14)) for i in range(20)]
    rows += [answer("b", i, 1.0 if i < 2 else None) for i in range(20)]
    found = compared(rows, baseline="model=a")

    assert not found.best("right") and "failed counted as wrong: 0.1" in found.text
    strict = compared(rows, baseline="model=a", failed="wrong")
    assert strict.estimate(strict[1], "right").mean == 0.1 and strict.missing(strict[1], "right") == 0
    assert strict.verdict(strict[1], "right") == "worse" and [g.label for g in strict.best("right")] == ["model=a"]
    with pytest.raises(RequestError, match="failed is 'missing' or 'wrong'"):
        compared(rows, failed="zero")


def test_a_sweep_that_counts_failures_as_wrong_is_compared_so() -> None:
    rows = [answer("a", i, None if i == 0 else 1.0, failed="wrong") for i in range(4)]

    assert compared(rows).estimate(compared(rows)[0], "right").mean == 0.75
    loose = compared(rows, failed="missing")
    assert loose.estimate(loose[0], "right").mean == 1.0, "what is asked for in a comparison goes before"


def test_cases_that_belong_together_are_no_separate_ones() -> None:
    rows = [
        answer("a", i, float(i // 10 % 2), params={"model": "a", "item": i, "document": f"d{i // 10}"})
        for i in range(60)
    ]
    apart, together = compared(rows), compared(rows, cluster="document")

    wide, narrow = together.estimate(together[0], "right"), apart.estimate(apart[0], "right")
    assert wide.method == "Wilson over 6 clusters" and wide.n == 60 and wide.low is not None and narrow.low is not None
    assert wide.low < narrow.low - 0.15
    with pytest.raises(RequestError, match="No run has a parameter 'page'"):
        compared(rows, cluster="page")


def test_answers_of_two_prompts_are_never_averaged() -> None:
    old = [answer("a", i, 0.0, sweep="old", task_sha256=f"o{i}") for i in range(3)]
    new = [answer("a", i, 1.0, sweep="new", task_sha256=f"n{i}") for i in range(3)]
    found = compared(old + new)
    known = found.estimate(found[0], "right")

    assert (known.n, known.mean) == (6, 0.5) and known.method == "Wilson over 3 clusters"
    assert "A setting had several tasks" in found.text
    by_task = compare_rows(old + new, by=["task"], metrics=["right"])
    assert [by_task.estimate(one, "right").mean for one in by_task] == [1.0, 0.0] or [
        by_task.estimate(one, "right").mean for one in by_task
    ] == [0.0, 1.0]
    assert "task" in compare_rows(old + new, metrics=["right"]).by


def test_items_that_params_name_are_paired_however_they_were_launched() -> None:
    def single(prompt: str, item: int, value: float) -> RunRow:
        named = {"prompt": prompt, "item": item}
        return answer("a", item, value, sweep=None, params=named, task_sha256=f"{prompt} {item}", repeat=None)

    rows = [single(prompt, item, float(item % 2 or prompt == "B")) for prompt in "AB" for item in range(5)]
    found = compared(rows, by=["prompt"], baseline="prompt=A")
    difference = found.difference(found[1], "right")
    assert difference is not None and difference.n == 5 and found.missing(found[1], "right") == 0

    mixed = [answer("a", i, 0.0, params={"item": i}, resolved={"model": "a"}) for i in range(5)]
    mixed += [answer("b", i, 1.0, sweep=None, params={"item": i}, resolved={"model": "b"}) for i in range(5)]
    found = compared(mixed, baseline="model=a")
    assert found.difference(found[1], "right").n == 5  # type: ignore[union-attr]


def test_tasks_without_a_name_are_the_cases_of_their_settings() -> None:
    rows = [answer(m, i, float(m == "b"), sweep=None, params={"model": m}, repeat=None) for i in range(6) for m in "ab"]
    found = compare_rows(rows, metrics=["right"], baseline="model=a")

    assert found.by == ("model",) and found.verdict(found[1], "right") == "better"
    assert found.text.splitlines()[0] == "2 settings, each on 6 cases; the case is the unit"


@pytest.mark.parametrize(
    ("reduce", "value"),
    [("mean", 0.6), ("median", 1.0), ("mode", 1.0), ("max", 1.0), ("at_least_4", 0.0), ("pass_at_2", 0.9)],
)
def test_the_repeats_of_a_case_come_to_what_was_asked_for(reduce: str, value: float) -> None:
    rows = [answer("a", item, float(r < 3), r) for item in range(4) for r in range(5)]
    found = compared(rows, reduce=reduce)

    known = found.estimate(found[0], "right")
    assert known.n == 4 and known.mean == pytest.approx(value)


def test_too_few_repeats_give_no_chance_of_one_in_several_and_a_reducer_has_a_name() -> None:
    rows = [answer("a", item, 1.0, r) for item in range(3) for r in range(2)]
    few = compared(rows, reduce="pass_at_3")
    assert few.estimate(few[0], "right").nonfinite == 3
    with pytest.raises(RequestError, match="no reducer 'middle'; there are mean, median"):
        compared(rows, reduce="middle")


def test_it_says_how_many_cases_tell_a_small_difference_apart() -> None:
    rows = [answer("a", i, float(i % 3 == 0)) for i in range(40)] + [answer("b", i, float(i % 2)) for i in range(40)]
    found = compared(rows, baseline="model=a")
    power = found.inference("right").power()

    assert power is not None and power.n == 40 and power.needed is not None and power.needed > 1000
    assert "40 cases tell a difference of" in found.text and "to tell 0.05 apart you need about" in found.text
    assert power.repeats_help is None and "repeats" not in found.text


def test_time_and_money_are_held_against_the_baseline_by_their_ratio() -> None:
    rows = [answer(m, i, 1.0, seconds=(1.0 + i) * (3 + i % 2 / 10 if m == "b" else 1)) for i in range(6) for m in "ab"]
    found = compare_rows(rows, by=["model"], metrics=["seconds"], baseline="model=a")

    assert "×3.05 [2.99, 3.11]" in found.text, "not the seconds more, which are those of the longest case"
    assert [one.label for one in found.best("seconds")] == ["model=a"]
    assert found.estimate(found[1], "seconds").method == "bootstrap of t"
    assert found.records() == found.records(), "the same each time"
