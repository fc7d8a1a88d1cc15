"""A score against what it cost, as an Altair chart where Altair is installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparison.grouping import FIGURES

if TYPE_CHECKING:
    from subagents_nb.experiments.comparing import Comparison


def chart_points(comparison: Comparison, metric: str | None = None) -> list[dict[str, Any]]:
    """Return one point for each group that has both a score and a cost.

    Raises:
        RequestError: nothing was judged, or not under this name.
    """
    scores = [name for name in comparison.metrics if name not in FIGURES]
    chosen = metric or next(iter(scores), None)
    if chosen is None or chosen not in comparison.metrics:
        raise RequestError(f"There is no score to draw; there are {', '.join(scores) or 'none'}. Give runs some first.")
    points = []
    for one in comparison.groups:
        score, cost = comparison.estimate(one, chosen), comparison.estimate(one, "cost_usd")
        if score.mean is not None and cost.mean is not None:
            low, high = score.low, score.high
            points.append({"group": one.label, "score": score.mean, "low": low, "high": high, "cost": cost.mean})
    return points


def score_against_cost(comparison: Comparison, metric: str | None = None) -> Any:
    """Return the chart; `Comparison.chart` says more."""
    points = chart_points(comparison, metric)
    try:
        altair = importlib.import_module("altair")
    except ImportError as error:
        raise RequestError('A chart needs Altair; run: pip install "subagents-nb[charts]"') from error
    base = altair.Chart(altair.Data(values=points)).encode(
        x=altair.X("cost:Q", title="cost in dollars, mean of a run"), tooltip=["group:N", "score:Q", "cost:Q"]
    )
    dots = base.mark_point(filled=True, size=80).encode(
        y=altair.Y("score:Q", title=metric or "score", scale=altair.Scale(zero=False)), color="group:N"
    )
    return dots + base.mark_rule().encode(y="low:Q", y2="high:Q", color="group:N")
