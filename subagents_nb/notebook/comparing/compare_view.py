"""Comparisons and differences on the page: tables that stay readable in a saved notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subagents_nb.blocks import Child, Column, Html, Table
from subagents_nb.experiments.cases.case_list import Cases
from subagents_nb.experiments.comparing import Comparison
from subagents_nb.experiments.comparison.comparison_words import (
    Cell,
    design_text,
    groups_cells,
    groups_columns,
    remarks,
    worst_table,
)
from subagents_nb.experiments.comparison.run_diffs import Diff
from subagents_nb.experiments.comparison.side_by_side import Row, Side
from subagents_nb.notebook.comparing.interval_bar import interval
from subagents_nb.notebook.page.html import bar, colour, element, frame, note, safe, soft, styled, to_page
from subagents_nb.notebook.page.lines import line, plural

MAX_LINE = 1_000
MAX_DIFF_CHARS = 60_000
MAX_DIFF_LINES = 400  # of all parts together; the text twin has the rest
_MONO = "font:12px/1.45 var(--jp-code-font-family,ui-monospace,monospace)"
_SIDE = "white-space:pre-wrap;overflow-wrap:anywhere"  # Lab wraps what stands in a cell
_A_ROW, _A_BIT = 300, 130  # characters of what is around a line, and around some words of it
_TONES = {"best": "ok", "better": "ok", "worse": "bad", "missing": "warn"}


def comparison_html(comparison: Comparison, *, token: str = "") -> Html:
    """Show a comparison as a table, the worst cases below it; by the token, a class, a page finds the table."""
    groups = Table(groups_columns(comparison), [], unseen="Comparison")
    toned = groups._replace(rows=[list(map(_drawn, row)) for row in groups_cells(comparison)])
    head = bar(safe(element("strong", None, "Comparison"), " ", soft(_tally(comparison))))
    body = [element("div", {"class": token}, toned) if token else toned, worst_table(comparison)]
    return to_page(frame("Comparison", head, [*body, *map(note, remarks(comparison))]))


def cases_html(cases: Cases) -> Html:
    """Show the first cases as a table."""
    table = cases.table()
    head = bar(element("strong", None, "Cases"), soft(table.caption))
    return to_page(frame("Cases", head, [table._replace(caption="", unseen="Cases")]))


def _tally(comparison: Comparison) -> str:
    runs = sum(len(one.rows) for one in comparison.groups)
    return f"{design_text(comparison)} · {plural(runs, 'run')}"


def _drawn(cell: Cell) -> Child:
    """Show what a cell says, and its bar below it."""
    said = _toned(cell.text)
    if cell.bar is None:
        return said
    return safe(said, element("div", None, interval(cell.bar, zero=cell.zero)))


def _toned(cell: str) -> Child:
    """Give the word at the end of a cell its colour; the word itself says it to everybody."""
    rest, _, word = cell.rpartition(" ")
    if cell == "missing":
        return styled("span", f"color:{colour('warn')}", cell)
    if word not in _TONES or not rest:
        return cell
    return safe(rest, " ", styled("span", f"font-weight:600;color:{colour(_TONES[word])}", word))


def diff_html(diff: Diff) -> Html:
    """Show what differs between two runs, part by part."""
    head = bar(
        safe(element("strong", None, line(diff.names[0], 80)), " → ", element("strong", None, line(diff.names[1], 80)))
    )
    if not diff.parts:
        return to_page(frame("Difference", head, [note("They do not differ.")]))
    body: list[Child] = []
    lines, chars, hidden = MAX_DIFF_LINES, MAX_DIFF_CHARS, 0
    for part in diff.parts:
        rows, shown = part.rows, []
        for row in rows[:lines] if chars > 0 else []:
            shown.append(row)
            lines, chars = lines - 1, chars - _size(row)
            if chars <= 0:
                break
        hidden += len(rows) - len(shown)
        if shown or not rows:
            body.append(styled("p", "margin:0;font-weight:600", part.name))
        body += [_sides(diff.names, part.name, shown) if shown else None, *map(note, part.notes)]
    if hidden:
        body.append(note(f"… {plural(hidden, 'more line')}, in diff.text"))
    body.append(note("Struck: only on the left. Underlined: only on the right."))
    return to_page(frame("Difference", head, body))


def _sides(names: tuple[str, str], part: str, rows: Sequence[Row]) -> Child:
    """Show the lines of two texts beside one another."""
    drawn: list[list[Child]] = []
    for row in rows:
        if row.gap:
            drawn.append([soft(f"… {plural(row.gap, 'line')} the same"), ""])
        drawn.append([_side(row.left, "bad", "line-through"), _side(row.right, "ok", "underline")])
    table = Table([Column(line(name, 80)) for name in names], drawn, unseen=f"{part}, side by side")
    return styled("div", _MONO, table)


def _size(row: Row) -> int:
    bits = [bit for side in (row.left, row.right) for bit in side or ()]
    return _A_ROW + sum(_A_BIT * bit.marked + min(len(bit.text), MAX_LINE) for bit in bits)


def _side(side: Side, tone: str, how: str) -> Child:
    if side is None:
        return ""
    mark = f"font-weight:600;color:{colour(tone)};text-decoration:{how};text-underline-offset:2px"
    bits = [styled("strong", mark, _cut(bit.text)) if bit.marked else _cut(bit.text) for bit in side]
    return styled("span", _SIDE, *bits)


def _cut(text: str) -> str:
    """Return some words of a line, of which a very long one loses its end."""
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]} …"


def comparison_state(comparison: Comparison) -> dict[str, Any]:
    """Return what the live table needs: cells as they are shown, and as they are sorted."""
    return {
        "columns": [{"title": column.title, "numeric": column.numeric} for column in groups_columns(comparison)],
        "rows": [
            {
                "cells": [line(cell.text, 200) for cell in row],
                "keys": _sort_keys(comparison, number),
                "bars": [None if cell.bar is None else [*cell.bar, cell.zero] for cell in row],
            }
            for number, row in enumerate(groups_cells(comparison))
        ],
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
