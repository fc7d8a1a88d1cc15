"""A comparison in words: one cell for each group and metric, the same in a terminal and on a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from subagents_nb.blocks import Column, Table
from subagents_nb.domain.values.words import one_line
from subagents_nb.experiments.comparison.grouping import DONE, FIGURES, LIVE, Group, param_text
from subagents_nb.experiments.estimates import Estimate

if TYPE_CHECKING:
    from subagents_nb.experiments.comparing import Case, Comparison

MAX_GROUPS = 60
MAX_SAME = 12
_WORST = 5


def _row(comparison: Comparison, one: Group) -> list[str]:
    cells = [param_text(value) for value in one.params.values()]
    cells.append(runs_text(one))
    for metric in comparison.metrics:
        cells.append(metric_text(comparison, one, metric))
        if comparison.compares(metric):
            cells.append(difference_text(comparison, one, metric))
    return cells


def runs_text(one: Group) -> str:
    """Say how many runs there are, and how many of them failed, were stopped or are at work."""
    live, stopped = one.count(LIVE), one.count({"stopped"})
    failed = len(one.rows) - one.count(DONE) - live - stopped
    parts = [str(len(one.rows))]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{stopped} stopped"] if stopped else []
    parts += [f"{live} live"] if live else []
    return ", ".join(parts)


def metric_text(comparison: Comparison, one: Group, metric: str) -> str:
    """Say what a group came to: mean, spread, number, interval, and whether it is the best."""
    estimate = comparison.estimate(one, metric)
    lacks = comparison.missing(one, metric)
    if estimate.mean is None:
        return f"{estimate.nonfinite} not finite" if estimate.nonfinite else "missing"
    parts = [figure(estimate.mean)]
    if estimate.sd is not None:
        parts.append(f"± {figure(estimate.sd)}")
    if estimate.low is not None and estimate.high is not None and not _is_figure(metric):
        parts.append(f"[{figure(estimate.low)}, {figure(estimate.high)}]")
    if not _is_figure(metric):
        counts = [f"n {estimate.n}"]
        counts += [f"{estimate.nonfinite} not finite"] if estimate.nonfinite else []
        counts += [f"{lacks} missing"] if lacks else []
        parts.append(f"({', '.join(counts)})")
    if one in comparison.best(metric):
        parts.append("best")
    return " ".join(parts)


def difference_text(comparison: Comparison, one: Group, metric: str) -> str:
    """Say the paired difference to the baseline."""
    if one is comparison.baseline:
        return "baseline"
    estimate = comparison.difference(one, metric)
    if estimate is None or estimate.mean is None:
        return "nothing in common"
    parts = [f"{estimate.mean:+.4g}"]
    if estimate.low is not None and estimate.high is not None:
        parts.append(f"[{estimate.low:+.4g}, {estimate.high:+.4g}]")
    return " ".join([*parts, f"(n {estimate.n})", comparison.verdict(one, metric)])


def remarks(comparison: Comparison) -> list[str]:
    """Say how the figures were made, what is the same in all runs, and what was left out."""
    methods = dict.fromkeys(_methods(comparison))
    lines = []
    if methods:
        lines.append(f"Mean ± standard deviation (n); 95 % intervals by {', '.join(methods)}.")
    if comparison.baseline is not None:
        lines.append(f"Baseline: {comparison.baseline.label}. Differences are paired, over what both have.")
    kept = [f"{one_line(k, 40)}={param_text(v)}" for k, v in comparison.same.items() if v is not None]
    if kept:
        more = f" and {len(kept) - MAX_SAME} more" if len(kept) > MAX_SAME else ""
        lines.append(f"The same in all: {', '.join(kept[:MAX_SAME])}{more}.")
    if len(comparison) > MAX_GROUPS:
        lines.append(f"{len(comparison) - MAX_GROUPS} more groups: .to_pandas() has all.")
    return lines


def _methods(comparison: Comparison) -> list[str]:
    estimates: list[Estimate | None] = []
    for metric in comparison.metrics:
        for one in comparison.groups:
            estimates += [None if _is_figure(metric) else comparison.estimate(one, metric)]
            estimates += [comparison.difference(one, metric) if comparison.compares(metric) else None]
    return [each.method for each in estimates if each is not None and each.low is not None]


def case_text(case: Case) -> tuple[str, str, str, str, str]:
    """Say one of the worst cases: metric, case, group, value, baseline."""
    before = "" if case.baseline is None else figure(case.baseline)
    return one_line(case.metric, 40), one_line(case.unit, 100), case.group.label, figure(case.value), before


def groups_table(comparison: Comparison) -> Table:
    """Describe the groups, one a row, with a column for each metric."""
    head = [Column(one_line(name, 40)) for name in comparison.by] + [Column("runs")]
    for metric in comparison.metrics:
        head.append(Column(one_line(metric, 40), numeric=True))
        if comparison.compares(metric):
            head.append(Column(f"{one_line(metric, 40)}, difference", numeric=True))
    return Table(head, [_row(comparison, one) for one in comparison.groups[:MAX_GROUPS]], unseen="Comparison")


def worst_table(comparison: Comparison) -> Table | None:
    """Describe the worst cases, if there are any."""
    heads = [Column("metric"), Column("case"), Column("group"), Column("value", True), Column("baseline", True)]
    width = 5 if comparison.baseline is not None else 4
    cases = [case_text(case)[:width] for case in comparison.worst(number=_WORST)]
    return Table(heads[:width], cases, caption="Worst cases") if cases else None


def figure(value: float) -> str:
    """Say a number for reading: at most four digits that count."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _is_figure(metric: str) -> bool:
    return metric in FIGURES
