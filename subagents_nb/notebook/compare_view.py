"""Comparisons, sweeps and differences on the page: tables that stay readable in a saved notebook."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from subagents_nb.experiments.comparing import Comparison
from subagents_nb.experiments.diffs import Diff
from subagents_nb.experiments.sweeps import Sweep
from subagents_nb.experiments.telling import case_told, tell
from subagents_nb.notebook.html import (
    QUIET,
    SOFT,
    Column,
    Html,
    bar,
    colour,
    element,
    frame,
    line,
    plural,
    pre,
    safe,
    styled,
    table,
)
from subagents_nb.notebook.tables import state_badge

MAX_DIFF_LINES = 400  # of all parts together; the text twin has the rest
MAX_PLACES = 60
_WORST = 5
_TONES = {"best": "ok", "better": "ok", "worse": "bad", "missing": "warn"}


def comparison_html(comparison: Comparison) -> Html:
    """Show a comparison as a table, the worst cases below it."""
    told = tell(comparison)
    columns = [Column(title, numeric) for title, numeric in zip(told.columns, told.numeric, strict=True)]
    rows = [[_toned(cell) for cell in row] for row in told.rows]
    head = bar(safe(element("strong", None, "Comparison"), " ", styled("span", SOFT, _tally(comparison))))
    body = [table(columns, rows, unseen="Comparison"), _worst(comparison)]
    return frame("Comparison", head, [*body, *(styled("p", QUIET, remark) for remark in told.remarks)])


def _tally(comparison: Comparison) -> str:
    runs = sum(len(one.rows) for one in comparison.groups)
    return f"{plural(len(comparison), 'group')}, {plural(runs, 'run')}"


def _toned(cell: str) -> Html | str:
    """Give the word at the end of a cell its colour; the word itself says it to everybody."""
    rest, _, word = cell.rpartition(" ")
    if cell == "missing":
        return styled("span", f"color:{colour('warn')}", cell)
    if word not in _TONES or not rest:
        return cell
    return safe(rest, " ", styled("span", f"font-weight:600;color:{colour(_TONES[word])}", word))


def _worst(comparison: Comparison) -> Html | None:
    cases = comparison.worst(number=_WORST)
    if not cases:
        return None
    heads = [Column("metric"), Column("case"), Column("group"), Column("value", True), Column("baseline", True)]
    width = 5 if comparison.baseline is not None else 4
    return table(heads[:width], [case_told(case)[:width] for case in cases], caption="Worst cases")


def sweep_html(sweep: Sweep) -> Html:
    """Show how far a sweep is: its counts, and one row for each of its runs."""
    counts = sweep.counts()
    parts = [f"{counts['done']} of {counts['cells']} done"]
    parts += [f"{counts[word]} {word}" for word in ("live", "failed", "missing") if counts[word]]
    head = bar(
        safe(element("strong", None, line(sweep.name, 80)), " ", styled("span", SOFT, ", ".join(parts))),
        styled("span", SOFT, "sweep"),
    )
    columns = [
        *(Column(line(name, 40)) for name in sweep.params),
        Column("repeat", True),
        Column("state"),
        Column("run"),
    ]
    rows = [
        [*cell.values(), state_badge(state) if state else "missing", name]
        for cell, state, name in itertools.islice(sweep.places(), MAX_PLACES)
    ]
    left = len(sweep) - MAX_PLACES
    more = f"… {plural(left, 'more run')}" if left > 0 else ""
    remarks = [text for text in (more, sweep.note) if text]
    return frame("Sweep", head, [table(columns, rows, unseen="Sweep"), *(styled("p", QUIET, r) for r in remarks)])


def diff_html(diff: Diff) -> Html:
    """Show what differs between two runs, part by part."""
    head = bar(
        safe(element("strong", None, line(diff.names[0], 80)), " → ", element("strong", None, line(diff.names[1], 80)))
    )
    if not diff.parts:
        return frame("Difference", head, [styled("p", QUIET, "They do not differ.")])
    body: list[Html] = []
    left = MAX_DIFF_LINES
    for part in diff.parts:
        shown = part.lines[: max(left, 0)]
        left -= len(part.lines)
        body += [styled("p", "margin:0;font-weight:600", part.name), pre("\n".join(shown))] if shown else []
    if left < 0:
        body.append(styled("p", QUIET, f"… {plural(-left, 'more line')}, in diff.text"))
    return frame("Difference", head, body)


def comparison_state(comparison: Comparison) -> dict[str, Any]:
    """Return what the live table needs: cells as they are shown, and as they are sorted."""
    told = tell(comparison)
    keys: list[Sequence[Any]] = [_sort_keys(comparison, number) for number in range(len(told.rows))]
    return {
        "columns": [{"title": t, "numeric": n} for t, n in zip(told.columns, told.numeric, strict=True)],
        "rows": [
            {"cells": [line(cell, 200) for cell in row], "keys": list(key)}
            for row, key in zip(told.rows, keys, strict=True)
        ],
        "remarks": [line(remark, 400) for remark in told.remarks],
        "worst": [list(case_told(case)) for case in comparison.worst(number=_WORST)],
    }


def _sort_keys(comparison: Comparison, number: int) -> list[Any]:
    one = comparison.groups[number]
    keys: list[Any] = [
        value if isinstance(value, int | float) else line(str(value), 200) for value in one.params.values()
    ]
    keys.append(len(one.rows))
    for metric in comparison.metrics:
        keys.append(comparison.estimate(one, metric).mean)
        if comparison.compares(metric):
            apart = comparison.difference(one, metric)
            keys.append(None if apart is None else apart.mean)
    return keys
