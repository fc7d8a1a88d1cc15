"""A sweep as a grid over two parameters, and the picture that is made of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.comparison.digits import axis_of, money, range_text, roughly, two_digits
from subagents_nb.experiments.statistics.estimates import Estimate
from subagents_nb.experiments.sweeps.sweep_cells import Reading, SweepCell
from subagents_nb.experiments.sweeps.sweep_grid import grid_of
from subagents_nb.experiments.sweeps.sweep_picture import MOST_ROWS, picture_of

DONE, RUNNING, FAILED = RunState.COMPLETE, RunState.RUNNING, RunState.FAILED


def place(
    state: RunState | None = DONE, *, repeat: int = 0, score: float | None = None, more: Any = None, **params: Any
) -> SweepCell:
    known = {"run_id": "r-" + "-".join(map(str, params.values())), **(more or {})}
    reading = None if state is None else Reading(state, "run", **known)
    return SweepCell(params, repeat, reading, {} if score is None else {"right": score})


def sweep(*params: str, **more: Any) -> Any:
    known = {"name": "dates", "launching": False, "found": 0, "launched": 0, "budget": None}
    return SimpleNamespace(**{**known, "params": params, **more})


def test_two_parameters_are_rows_and_columns_and_cases_and_repeats_are_within() -> None:
    places = [
        place(model=m, tone=t, case=c, repeat=r, score=float(c == "1"))
        for m in "ab" for t in ("dry", "warm", "terse") for c in "12" for r in range(2)
    ]  # fmt: skip

    grid = grid_of(places, ("model", "tone", "case"))

    assert (grid.row_name, grid.rows, grid.column_name, grid.columns) == (
        "model",
        ("a", "b"),
        "tone",
        ("dry", "warm", "terse"),
    )
    first = grid.cells[0][0]
    assert first is not None and first.places == (0, 1, 2, 3) and first.done == 4 and first.final
    assert first.score is not None and (first.score.n, first.score.mean) == (2, 0.5)  # two cases, not four runs


def test_one_parameter_is_a_column_of_rows_and_of_many_values_none_stands_across() -> None:
    assert grid_of([place(t=n) for n in range(9)], ("t",)).columns == ("",)
    grid = grid_of([place(t=n, model=m) for n in range(9) for m in range(8)], ("t", "model"))
    assert (grid.column_name, len(grid.rows), grid.rows[1]) == ("", 72, "0 · 1")
    wide = grid_of([place(t=n, model=m) for n in range(3) for m in range(8)], ("t", "model"))
    assert (wide.row_name, wide.column_name, len(wide.rows)) == ("model", "t", 8)


def test_of_three_parameters_a_row_is_a_combination_and_holes_stay_empty() -> None:
    grid = grid_of([place(m="a", k=1, t=1), place(m="a", k=2, t=2)], ("m", "k", "t"))

    assert grid.rows == ("a · 1", "a · 2") and [[one is None for one in line] for line in grid.cells] == [
        [False, True],
        [True, False],
    ]
    assert grid.label(1, 1) == "a · 2, 2"


def test_cases_alone_are_rows() -> None:
    assert grid_of([place(case="x"), place(case="y")], ("case",)).rows == ("x", "y")


def test_a_picture_counts_every_cell_says_why_runs_failed_and_is_json() -> None:
    limited = {"error": "answered 429", "cost": 0.25, "tokens": 10}
    places = [
        place(model="a", tone="dry", score=1.0, more={"cost": 0.5, "seconds": 60.0}),
        place(model="a", tone="warm", score=0.0, more={"cost": 0.5, "seconds": 60.0}),
        place(FAILED, model="b", tone="dry", more=limited),
        place(RUNNING, model="b", tone="warm", more={"working_since": 1_796_083_140.0, "asks": True}),
        place(None, model="c", tone="dry"),
        place(RunState.QUEUED, model="c", tone="warm"),
    ]
    now = 1_796_083_200.0  # 2026-12-01
    picture = picture_of(sweep("model", "tone", launching=True, budget=UsageBudget(cost_usd={"hard": 5})), places, now)

    assert json.loads(json.dumps(picture, allow_nan=False)) == picture
    assert picture["counts"] == [["done", 2], ["failed", 1], ["at work", 1], ["waiting", 2]]
    assert sum(number for _, number in picture["counts"]) == picture["all"] == 6
    assert picture["failures"] == {
        "told": [{"where": "b, dry", "number": 1, "why": "answered 429", "run": "r-b-dry"}],
        "left": 0,
    }
    (dry, warm), (bad, asks), (to_come, waits) = picture["cells"]
    assert (dry["score"], dry["said"], dry["run"], dry["cost"]) == ("1.00", "complete", "r-a-dry", "$0.50")
    assert (bad["state"], asks["state"], to_come["said"], waits["said"]) == ("failed", "asks you", "to come", "queued")
    assert "score" not in bad and to_come["run"] == "" and warm["bar"][1] < dry["bar"][1]
    assert [fact["strong"] for fact in picture["facts"]] == ["about 2 min", "$1.25"]
    assert picture["facts"][1]["text"].startswith("spent, $2.50 expected (") and picture["facts"][1]["text"].endswith(
        ", of $5.00"
    )


def test_a_cell_of_several_runs_says_how_many_and_an_ended_sweep_expects_nothing() -> None:
    places = [place(m=1, repeat=n, more={"cost": 0.1}) for n in range(3)] + [place(FAILED, m=1, repeat=3)]
    picture = picture_of(sweep("m"), places, 0.0)

    (cell,) = picture["cells"][0]
    assert (cell["said"], cell["state"], cell["run"], cell["runs"]) == ("3 of 4, 1 failed", "failed", "", 4)
    assert picture["facts"] == [{"strong": "$0.30", "text": "spent"}] and not picture["live"]


def test_without_a_price_tokens_are_said_and_before_an_end_no_time_left() -> None:
    places = [place(RUNNING, m=1, more={"tokens": 1200}), place(None, m=2)]

    assert [one["strong"] + one["text"] for one in picture_of(sweep("m", launching=True), places, 0.0)["facts"]] == [
        "time left: no run has ended yet", "1.2k tokensused",
    ]  # fmt: skip


def test_many_rows_and_many_reasons_are_cut_and_say_so() -> None:
    picture = picture_of(sweep("m"), [place(FAILED, m=n, more={"error": f"e{n}"}) for n in range(60)], 0.0)

    assert (len(picture["cells"]), picture["more_rows"]) == (MOST_ROWS, 60 - MOST_ROWS)
    assert len(picture["failures"]["told"]) + picture["failures"]["left"] == 60


def test_figures_have_two_digits_that_count() -> None:
    assert [two_digits(v) for v in (0.8123, 0.8, 12.34, 1234.5, 0, -0.0567, 0.00001)] == [
        "0.81", "0.80", "12", "1,234", "0", "-0.057", "1.0e-05",
    ]  # fmt: skip
    assert two_digits(1.0, share=True) == "1.00" and two_digits(float("nan")) == "NaN"
    assert [money(v) for v in (None, 0.0, 0.014, 4.2, 0.00002)] == ["", "$0", "$0.014", "$4.20", "<$0.0001"]
    assert [roughly(s) for s in (3, 47, 700, 9000)] == [("5", "s"), ("45", "s"), ("12", "min"), ("2.5", "h")]


def test_bars_stand_on_one_axis_and_those_of_shares_stay_within_0_and_1() -> None:
    found = [Estimate(3, 0.5, low=0.1, high=0.98), None, Estimate(0, None)]
    axis = axis_of(found, share=True)
    assert axis is not None and axis.high == 1.0 and 0 < axis.low < 0.1 and 0 < axis.place(0.5) < 1
    assert (
        axis_of([None]) is None
        and range_text(found[0], share=True) == "0.10 to 0.98"
        and range_text(Estimate(1, 1.0)) == ""
    )
    alone = axis_of([Estimate(1, 4.0)])
    assert alone is not None and round(alone.place(4.0), 9) == 0.5
