"""A score against its cost, drawn by Altair itself."""

from __future__ import annotations

import pytest

from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparing import compare_rows
from subagents_nb.experiments.rows import RunRow


def row(number: int, model: str, score: float | None, cost: float | None) -> RunRow:
    usage = {"input_tokens": 1, "output_tokens": 1, "cost_usd": cost}
    scores = {("acc", None): score} if score is not None else {}
    return RunRow(
        f"r-{number}", state="complete", name=f"run-{number}", params={"model": model}, sweep="s", repeat=number,
        task_sha256="t", usage=usage, seconds=1.0, scores=scores,
    )  # fmt: skip


def test_each_group_with_a_score_and_a_cost_is_a_point_and_what_is_unknown_is_none() -> None:
    rows = [row(n, "a", 0.5 + n / 10, 0.01) for n in range(3)]
    rows += [row(n, "<img src=x>", 0.9 + n / 100, 0.05) for n in range(3)]
    rows += [row(9, "no cost", 1.0, None), row(10, "no score", None, 1.0)]
    chart = compare_rows(rows).chart("acc").to_dict()

    points = [point for layer in (chart, *chart["layer"]) for point in layer.get("data", {}).get("values", [])]
    assert {(point["group"], round(point["score"], 2), round(point["cost"], 2)) for point in points} == {
        ("model=a", 0.6, 0.01),
        ("model=<img src=x>", 0.91, 0.05),
    }
    assert all(point["low"] < point["score"] < point["high"] for point in points)
    dots, rules = chart["layer"]
    assert dots["encoding"]["y"]["field"] == "score" and rules["encoding"]["y2"]["field"] == "high"


def test_nothing_can_be_drawn_of_what_nobody_judged() -> None:
    with pytest.raises(RequestError, match="no score to draw"):
        compare_rows([row(0, "a", None, 1.0), row(1, "b", None, 1.0)]).chart()
