"""A comparison in words: one cell for each group and metric, the same in a terminal and on a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from subagents_nb.blocks import Column, Table
from subagents_nb.domain.values.words import one_line
from subagents_nb.experiments.comparison.digits import Axis, axis_of, range_text, signed, two_digits
from subagents_nb.experiments.comparison.grouping import DONE, FIGURES, LIVE, Group, param_text, place_of
from subagents_nb.experiments.comparison.inference import SMALL
from subagents_nb.experiments.plan_parts import TASK
from subagents_nb.experiments.rows import RunRow
from subagents_nb.experiments.statistics.differences import EQUAL
from subagents_nb.experiments.statistics.estimates import Estimate

if TYPE_CHECKING:
    from subagents_nb.experiments.comparing import Case, Comparison

MAX_GROUPS = 60
MAX_SAME = 12
UNITS = {"cost_usd": "$ a run", "tokens": "tokens a run", "seconds": "s a run"}
MAX_CHANGES = 6
_WORST = 5


class Cell(NamedTuple):
    """What a cell of the table says, and where on the axis of its column its bar begins, has its mean, and ends."""

    text: str
    bar: tuple[float, float, float] | None = None
    zero: float | None = None  # where no difference stands on that axis


def groups_cells(comparison: Comparison) -> list[list[Cell]]:
    """Return the cells of each group: its parameters, its runs, and of each metric what it came to."""
    axes, apart = {}, {}
    for metric in comparison.metrics:
        if _is_figure(metric):
            continue
        share = comparison.inference(metric).is_share
        axes[metric] = axis_of((comparison.estimate(one, metric) for one in comparison), share=share)
        if comparison.compares(metric):
            apart[metric] = axis_of((comparison.difference(one, metric) for one in comparison), zero=True)
    return [list(_row(comparison, one, axes, apart)) for one in comparison.groups[:MAX_GROUPS]]


def _row(
    comparison: Comparison, one: Group, axes: Mapping[str, Axis | None], apart: Mapping[str, Axis | None]
) -> Iterator[Cell]:
    yield from (Cell(param_text(value)) for value in one.params.values())
    yield Cell(runs_text(one))
    for metric in comparison.metrics:
        found = None if _is_figure(metric) else comparison.estimate(one, metric)
        yield Cell(metric_text(comparison, one, metric), _bar(found, axes.get(metric)))
        if comparison.compares(metric):
            axis = apart.get(metric)
            bar = _bar(comparison.difference(one, metric), axis)
            zero = axis.place(0.0) if axis is not None and bar is not None else None
            yield Cell(difference_text(comparison, one, metric), bar, zero)


def _bar(found: Estimate | None, axis: Axis | None) -> tuple[float, float, float] | None:
    if found is None or axis is None or found.mean is None or found.low is None or found.high is None:
        return None
    low, at, high = (round(axis.place(end), 4) for end in (found.low, found.mean, found.high))
    return low, at, high


def runs_text(one: Group) -> str:
    """Say how many runs there are, and how many of them failed, were stopped or are at work."""
    live, stopped = one.count(LIVE), one.count({"stopped"})
    failed = len(one.rows) - one.count(DONE) - live - stopped
    parts = [str(len(one.rows))]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{stopped} stopped"] if stopped else []
    parts += [f"{live} live"] if live else []
    return ", ".join(parts)


def design_text(comparison: Comparison) -> str:
    """Say what was compared on what: settings, cases, repeats, and which of them is the unit of all intervals."""
    judged = [name for name in comparison.metrics if any(one.repeats.get(name) for one in comparison.groups)]
    metric = next(iter([name for name in judged if not _is_figure(name)] or judged), comparison.metrics[0])
    made = [units for one in comparison.groups if (units := one.repeats.get(metric, {}))]
    settings = f"{len(comparison)} setting{'' if len(comparison) == 1 else 's'}"
    each = ", each" if len(comparison) > 1 else ""
    if comparison.inference(metric).over_repeats:
        count = _span(map(len, made))
        often = "once" if count == "1" else f"{count} times"
        return f"{settings}{each} {often} on one case: what follows is about this case alone"
    cases, repeats = _span(map(len, made)), _span(len(values) for units in made for values in units.values())
    again = "" if repeats == "1" else f" × {repeats} repeats"
    return f"{settings}{each} on {cases} case{'' if cases == '1' else 's'}{again}; the case is the unit"


def _span(counts: Iterable[int]) -> str:
    known = sorted(set(counts)) or [0]
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def metric_text(comparison: Comparison, one: Group, metric: str) -> str:
    """Say what a group came to by two digits: mean, interval, number, and whether it is the best."""
    known = comparison.inference(metric)
    at = place_of(one, comparison.groups)
    estimate = known.summary(at)
    lacks = comparison.missing(one, metric)
    if estimate.mean is None:
        return f"{estimate.nonfinite} not finite" if estimate.nonfinite else "missing"
    parts = [two_digits(estimate.mean, share=known.is_share)]
    if _is_figure(metric):
        parts += _times(comparison, one, metric)
    else:
        counts = [f"n {estimate.n}"]
        counts += [f"{estimate.nonfinite} not finite"] if estimate.nonfinite else []
        counts += [f"{lacks} missing"] if lacks else []
        wrong = known.as_wrong(at)
        counts += [f"failed counted as wrong: {two_digits(wrong, share=True)}"] if wrong is not None else []
        parts.append(f"({'; '.join(filter(None, [range_text(estimate, share=known.is_share), ', '.join(counts)]))})")
    if one in comparison.best(metric):
        parts.append("best")
    return " ".join(parts)


def _times(comparison: Comparison, one: Group, metric: str) -> list[str]:
    """Say how many times as much it took as the baseline."""
    if comparison.baseline is None or one is comparison.baseline:
        return []
    held = comparison.inference(metric).ratio(
        place_of(one, comparison.groups), place_of(comparison.baseline, comparison.groups)
    )
    if held is None or held.mean is None or held.low is None or held.high is None:
        return []
    return [f"×{held.mean:.3g} [{held.low:.3g}, {held.high:.3g}]"]


def difference_text(comparison: Comparison, one: Group, metric: str) -> str:
    """Say the difference to the baseline."""
    if one is comparison.baseline:
        return "baseline"
    estimate = comparison.difference(one, metric)
    if estimate is None or estimate.mean is None:
        return "nothing in common"
    share = comparison.inference(metric).is_share
    parts = [signed(estimate.mean, share=share)]
    parts += ["in each"] if estimate.method == EQUAL and estimate.mean else []
    span = ""
    if estimate.low is not None and estimate.high is not None:
        span = f"{signed(estimate.low, share=share)} to {signed(estimate.high, share=share)}; "
    return " ".join([*parts, f"({span}n {estimate.n})", comparison.verdict(one, metric)])


def remarks(comparison: Comparison) -> list[str]:
    """Say how the figures were made, what is the same in all runs, and what was left out."""
    judged = [name for name in comparison.metrics if not _is_figure(name)]
    lines = list(_power(comparison, judged))
    methods = dict.fromkeys(_methods(comparison, judged))
    if methods:
        lines.append(f"Means of n, with 95 % intervals by {', '.join(methods)}. All digits: .to_pandas()")
    if comparison.baseline is not None:
        lines.append(f"Baseline: {comparison.baseline.label}. {_tests(comparison, judged)}")
    lines += _changes(comparison)
    lines += _judges([row for one in comparison.groups for row in one.rows])
    kept = [f"{one_line(k, 40)}={param_text(v)}" for k, v in comparison.same.items() if v is not None]
    if kept:
        more = f" and {len(kept) - MAX_SAME} more" if len(kept) > MAX_SAME else ""
        lines.append(f"The same in all: {', '.join(kept[:MAX_SAME])}{more}.")
    if len(comparison) > MAX_GROUPS:
        lines.append(f"{len(comparison) - MAX_GROUPS} more groups: .to_pandas() has all.")
    return lines


def _changes(comparison: Comparison) -> Iterable[str]:
    """Say what else differs than what the person varied: in which lines, and what of it stands in one group."""
    mixed = dict.fromkeys(name for one in comparison.groups for name in one.several)
    for name in mixed:
        several = "tasks" if name == TASK else f"values of {name}"
        yield (
            f'A setting had several {several}: what was judged of each counts by itself. by="{name}" tells them apart.'
        )
    for change in comparison.changes.own[:MAX_CHANGES]:
        yield f"{change.name}: {change.value} differs from {change.before} first in {one_line(change.line, 200)}."
    if (more := len(comparison.changes.own) - MAX_CHANGES) > 0:
        yield f"{more} more differ: diff(a, b) shows two runs in full."
    for cause in dict.fromkeys(cause for _, cause in comparison.changes.following):
        names = ", ".join(name for name, other in comparison.changes.following if other == cause)
        yield f"With {one_line(cause, 80)} differs as well: {names}."


def _judges(rows: Sequence[RunRow]) -> Iterable[str]:
    """Say what judging cost beside the runs, and what of the scorers nobody checked."""
    tokens = sum(row.judges.get(name, 0) for row in rows for name in ("input_tokens", "output_tokens"))
    asked = [row for row in rows if row.judges]
    if asked:
        known = all("cost_usd" in row.judges for row in asked)
        money = f"${sum(row.judges['cost_usd'] for row in asked):,.4g}" if known else "an unknown sum"
        yield f"Judges used {tokens:,.0f} tokens and {money}, which is in no cost above."
    names = sorted({one_line(name, 60) for row in rows for name in row.unchecked})
    if names:
        more = f" and {len(names) - MAX_CHANGES} more" if len(names) > MAX_CHANGES else ""
        yield f"Not checked, if it changed since it was judged: {', '.join(names[:MAX_CHANGES])}{more}."


def _power(comparison: Comparison, judged: Iterable[str]) -> Iterable[str]:
    for metric in judged:
        power = comparison.inference(metric).power()
        if power is None:
            continue
        told = f"{one_line(metric, 40)}: {power.n} cases tell a difference of {figure_short(power.told)} apart (80 %)"
        if power.needed is not None:
            told += f"; to tell {SMALL} apart you need about {_about(power.needed):,} cases"
        if power.repeats_help is not None:
            told += "; more repeats help as well" if power.repeats_help else "; more repeats hardly help"
        yield f"{told}."


def _tests(comparison: Comparison, judged: Iterable[str]) -> str:
    """Say by what differences were told from chance."""
    found: dict[str, None] = {}
    apart: dict[bool, None] = {}
    most = 0
    for metric in judged:
        known = comparison.inference(metric)
        most = max(most, known.compared())
        for one in comparison.groups:
            difference = comparison.difference(one, metric)
            if difference is not None and difference.p is not None:
                found[difference.test] = None
                apart[known.over_repeats] = None
    if not found:
        return "Differences are over what both have."
    how = "case by case, over what both have" if False in apart else "between repeats of one case"
    family = f", Holm over {most} groups" if most > 1 else ""
    return f"Differences are {how}; better and worse by {', '.join(found)} at 5 %{family}."


def _about(number: int) -> int:
    """Round up to two digits that count: nobody knows the spread better."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def figure_short(value: float) -> str:
    """Say a number by the two digits that count."""
    return f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"


def _methods(comparison: Comparison, judged: Iterable[str]) -> list[str]:
    estimates: list[Estimate | None] = []
    for metric in judged:
        for one in comparison.groups:
            estimates += [comparison.estimate(one, metric), comparison.difference(one, metric)]
    return [each.method for each in estimates if each is not None and each.low is not None]


def case_text(case: Case) -> tuple[str, str, str, str, str]:
    """Say one of the worst cases: metric, case, group, value, baseline."""
    before = "" if case.baseline is None else figure(case.baseline)
    return one_line(case.metric, 40), one_line(case.unit, 100), case.group.label, figure(case.value), before


def groups_table(comparison: Comparison) -> Table:
    """Describe the groups, one a row, with a column for each metric."""
    rows = [[cell.text for cell in row] for row in groups_cells(comparison)]
    return Table(groups_columns(comparison), rows, unseen="Comparison")


def groups_columns(comparison: Comparison) -> list[Column]:
    """Return the heads of the columns, with the unit of what has one."""
    head = [Column(one_line(name, 40)) for name in comparison.by] + [Column("runs")]
    for metric in comparison.metrics:
        head.append(Column(UNITS.get(metric, one_line(metric, 40)), numeric=True))
        if comparison.compares(metric):
            head.append(Column(f"{one_line(metric, 40)}, difference", numeric=True))
    return head


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
