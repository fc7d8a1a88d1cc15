"""Comparison: groups, the best by word, paired differences, the worst cases, and what is missing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.rows import RunRow

NAN = math.nan
EVIL = "<img src=x onerror=alert(1)>"


def row(
    number: int, model: str, repeat: int = 0, *, state: str = "complete", scores: Any = None, **more: Any
) -> RunRow:
    fields: dict[str, Any] = {
        "name": f"run-{number}",
        "params": {"model": model},
        "sweep": "s",
        "repeat": repeat,
        "task_sha256": "t",
        "usage": {"input_tokens": 10, "output_tokens": number, "cost_usd": 0.5},
        "seconds": 2.0,
        "scores": {(name, None): value for name, value in (scores or {}).items()},
    }
    return RunRow(f"r-{number}", state=state, **(fields | more))


def two_models(a: list[float], b: list[float], **options: Any) -> Comparison:
    rows = [row(n, "a", n, scores={"acc": value}) for n, value in enumerate(a)]
    rows += [row(10 + n, "b", n, scores={"acc": value}) for n, value in enumerate(b)]
    return compare_rows(rows, **options)


def test_runs_with_the_same_parameters_are_one_row_with_mean_spread_and_number() -> None:
    found = two_models([0.2, 0.3, 0.4], [0.7, 0.8, 0.9])

    assert found.by == ("model",) and [one.label for one in found] == ["model=a", "model=b"]
    first = found.estimate(found[0], "acc")
    assert (first.n, first.mean, first.sd) == (3, pytest.approx(0.3), pytest.approx(0.1))
    assert [one.label for one in found.best("acc")] == ["model=b"]
    assert found.best("cost_usd") == []  # all cost the same
    assert found.text.splitlines()[0] == "2 settings, each 3 times on one case: what follows is about this case alone"
    line = found.text.splitlines()[3]
    assert line.startswith("b") and "0.80 (0.55 to 1.0; n 3) best" in line
    assert "95 % intervals by t." in found.text


def test_less_is_better_where_somebody_says_so_and_of_money_always() -> None:
    found = two_models([1.0, 1.1, 1.2], [3.0, 3.1, 3.2], lower=["acc"])

    assert [one.label for one in found.best("acc")] == ["model=a"]
    assert [one.label for one in found.best("tokens")] == ["model=a"]


def over_cases(*models: list[float], **options: Any) -> Comparison:
    rows = [
        row(100 * m + n, "abcdefgh"[m], params={"model": "abcdefgh"[m], "case": f"c{n}"}, scores={"acc": value})
        for m, values in enumerate(models)
        for n, value in enumerate(values)
    ]
    return compare_rows(rows, **options)


def test_the_difference_to_the_baseline_is_paired_by_case() -> None:
    found = over_cases([0.1, 0.5, 0.9, 0.3], [0.2, 0.61, 1.0, 0.41], baseline={"model": "a"})

    apart = found.difference(found[1], "acc")
    assert apart is not None and apart.n == 4 and apart.method == "paired t"
    assert apart.mean == pytest.approx(0.105) and apart.excludes_zero  # although the groups overlap widely
    assert found.verdict(found[1], "acc") == "better" and found.difference(found[0], "acc") is None
    assert "+0.10 (+0.0" in found.text and "; n 4) better" in found.text and "baseline" in found.text
    assert found.text.splitlines()[0] == "2 settings, each on 4 cases; the case is the unit"
    assert "Differences are case by case, over what both have; better and worse by paired t at 5 %." in found.text


def test_repeats_of_one_case_are_two_samples_and_no_pairs() -> None:
    found = two_models([0.1, 0.5, 0.9, 0.3], [0.2, 0.61, 1.0, 0.41], baseline={"model": "a"})

    apart = found.difference(found[1], "acc")
    assert apart is not None and apart.method == "Welch's t" and not apart.excludes_zero
    assert found.verdict(found[1], "acc") == "unclear" and "between repeats of one case" in found.text


def test_an_interval_across_zero_is_called_unclear() -> None:
    found = two_models([0.1, 0.5, 0.9], [0.9, 0.1, 0.5], baseline="model=a")

    assert found.verdict(found[1], "acc") == "unclear"


def test_a_missing_case_is_no_zero_and_is_not_paired() -> None:
    rows = [row(n, "a", n, scores={"acc": 1.0}) for n in range(3)]
    rows += [
        row(10, "b", 0, scores={"acc": 1.0}),
        row(11, "b", 1, state="failed"),
        row(12, "b", 2, scores={"acc": 0.5}),
    ]
    found = compare_rows(rows, baseline={"model": "a"})

    mine = found.estimate(found[1], "acc")
    assert (mine.n, mine.mean, found.missing(found[1], "acc")) == (2, 0.75, 1)
    apart = found.difference(found[1], "acc")
    assert apart is not None and apart.n == 2
    assert "1 missing" in found.text and "3, 1 failed" in found.text


def test_nothing_judged_is_missing_in_every_word() -> None:
    found = compare_rows([row(1, "a", scores={"acc": 1.0}), row(2, "b")], baseline={"model": "a"})

    assert found.estimate(found[1], "acc").mean is None
    assert "missing" in found.text and "nothing in common" in found.text


def test_cases_are_what_is_paired_and_their_repetitions_are_averaged() -> None:
    def judged(number: int, model: str, repeat: int, **cases: float) -> RunRow:
        return row(number, model, repeat, scores=None) if not cases else RunRow(
            f"r-{number}", name="n", state="complete", params={"model": model}, sweep="s", repeat=repeat,
            scores={("acc", case): value for case, value in cases.items()},
        )  # fmt: skip

    found = compare_rows(
        [judged(1, "a", 0, x=1.0, y=0.0), judged(2, "a", 1, x=0.0, y=0.0), judged(3, "b", 0, x=1.0, y=1.0, z=1.0)],
        baseline={"model": "a"},
    )

    assert found[0].units["acc"] == {"x": 0.5, "y": 0.0}
    apart = found.difference(found[1], "acc")
    assert apart is not None and (apart.n, apart.mean) == (2, 0.75)
    assert found.missing(found[0], "acc") == 1


def test_parameters_beside_those_that_make_the_groups_tell_the_cases_apart() -> None:
    rows = [
        row(n, model, 0, params={"model": model, "question": q}, scores={"acc": value})
        for n, (model, q, value) in enumerate([("a", "q1", 0.0), ("a", "q2", 1.0), ("b", "q1", 1.0), ("b", "q2", 1.0)])
    ]
    found = compare_rows(rows, by=["model"], baseline="model=a")

    assert len(found) == 2 and found.units("acc") == ["question=q1", "question=q2"]
    assert [(case.unit, case.loss) for case in found.worst()] == []
    of_itself = compare_rows(rows, baseline="model=a")
    assert of_itself.text == found.text, "a baseline that leaves parameters open has them tell the cases apart"
    with pytest.raises(
        RequestError, match=r"2 groups are the baseline .*; name more of its parameters; there are: model=a"
    ):
        compare_rows(rows, by=["model", "question"], baseline="model=a")
    turned = compare_rows(rows, by=["model"], baseline="model=b")
    assert [(case.unit, case.loss) for case in turned.worst()] == [("question=q1", 1.0)]


def test_the_worst_cases_come_first_and_what_could_not_be_judged_before_them() -> None:
    found = two_models([0.9, 0.9, 0.9], [0.5, NAN, 0.1], baseline="model=a")

    assert [case.value for case in found.worst()[1:]] == [0.1, 0.5] and math.isnan(found.worst()[0].value)
    assert "1 not finite" in found.text and found.text.index("NaN") < found.text.index("0.1 ")


def test_runs_that_do_not_differ_are_told_apart_by_name() -> None:
    found = compare_rows([row(1, "a"), row(2, "a")])

    assert found.by == ("name",) and [one.params["name"] for one in found] == ["run-1", "run-2"]
    assert "The same in all: model=a." in found.text


def test_hostile_names_stay_one_plain_line() -> None:
    rows = [row(1, f"{EVIL}\n\x1b[31m", scores={f"{EVIL}\nacc": NAN}), row(2, "b", scores={f"{EVIL}\nacc": math.inf})]
    found = compare_rows(rows, baseline={"model": "b"})

    assert "\x1b" not in found.text and len(found.text.splitlines()[1].split(EVIL)) > 1
    assert all(len(line.splitlines()) <= 1 for line in found.text.split("\n"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["nothing"]}, "No run has a parameter 'nothing'"),
        ({"metrics": ["f1"]}, "Nothing was judged as 'f1'; there are acc"),
        ({"baseline": "model=c"}, "No group is the baseline"),
        ({"baseline": 7}, "named by parameters"),
    ],
)
def test_what_makes_no_sense_is_told_with_what_would(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        two_models([1.0], [0.0], **options)


def test_a_group_that_only_fails_is_not_the_best_by_failing_fast() -> None:
    cheap = row(1, "a", state="failed", usage={"input_tokens": 1, "output_tokens": 0})
    rows = [row(2, "b"), row(3, "b", 1), row(4, "b", 2), row(90, "c"), row(91, "c", 1), row(92, "c", 2)]
    found = compare_rows([cheap, *rows])

    assert [one.label for one in found.best("tokens")] == ["model=b"]


def test_records_hold_every_figure_by_name() -> None:
    record = two_models([0.0] * 5, [1.0] * 5, baseline="model=a").records()[1]

    assert record["params.model"] == "b" and record["runs"] == 5 and record["metrics.acc.best"] is True
    assert record["metrics.acc.difference.n"] == 5 and record["metrics.acc.method"] == "Wilson"
    assert record["metrics.acc.difference.test"] == "Fisher's exact test" and record["metrics.acc.verdict"] == "better"


def test_a_live_run_has_no_figures_yet() -> None:
    found = compare_rows([row(1, "a", state="running"), row(2, "b")])

    assert found.estimate(found[0], "tokens").mean is None and found.text.splitlines()[2].count("1 live") == 1


def test_a_metric_is_a_share_in_all_groups_or_in_none_and_a_figure_never() -> None:
    counts = two_models([1.0, 1.0, 1.0], [3.0, 5.0, 4.0])
    assert [counts.estimate(one, "acc").method for one in counts] == ["all are equal", "t"]
    shares = two_models([1.0, 1.0, 1.0], [0.0, 1.0, 0.0])
    assert [shares.estimate(one, "acc").method for one in shares] == ["Wilson", "Wilson"]
    free = compare_rows([row(n, "a", n, usage={"cost_usd": 0, "input_tokens": n}) for n in range(2)], by=["model"])
    assert [free.estimate(free[0], name).method for name in ("cost_usd", "tokens")] == ["all are equal", "t"]


@pytest.mark.parametrize("wanted", ["0", "0.0", "0.00", " 0", 0, 0.0])
def test_a_number_names_its_group_however_it_is_written(wanted: Any) -> None:
    rows = [row(n, "a", params={"temperature": float(n)}) for n in range(2)]
    given = {"temperature": wanted} if not isinstance(wanted, str) else f"temperature={wanted}"
    for baseline in (given, {"temperature": wanted}):
        found = compare_rows(rows, baseline=baseline).baseline
        assert found is not None and found.params == {"temperature": 0.0}


def test_a_text_is_itself_and_yes_is_no_number() -> None:
    words: list[Any] = ["0", "true", True, 1]
    rows = [row(n, "a", params={"k": word}) for n, word in enumerate(words)]
    found = [compare_rows(rows, baseline={"k": word}).baseline for word in ("0", True, 1)]
    assert [one.params["k"] for one in found if one is not None] == ["0", True, 1]
