"""A sweep as it is shown, in words and numbers alone: on a live page, in a saved table and in a terminal. Pure.

It is JSON, so that a page can be sent it as it is; see widgets/sweep.js and notebook/comparing/sweep_view.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.words import one_line
from subagents_nb.experiments.comparison.digits import Axis, axis_of, money, range_text, roughly, two_digits
from subagents_nb.experiments.comparison.grouping import CASE, param_text
from subagents_nb.experiments.sweeps.sweep_cells import DONE, Reading, SweepCell, no_run, tally, whence_text
from subagents_nb.experiments.sweeps.sweep_grid import GridCell, SweepGrid, costs_of, grid_of, paces_of
from subagents_nb.experiments.sweeps.sweep_outlook import Span, cost_expected, time_left

MOST_ROWS = 24
MOST_FAILURES = 5
MOST_RUNS = 60
ASKS = "asks you"
Picture = dict[str, Any]


class Shown(Protocol):
    """What a picture needs of a sweep."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> Sequence[str]: ...
    @property
    def launching(self) -> bool: ...
    @property
    def found(self) -> int: ...
    @property
    def launched(self) -> int: ...
    @property
    def budget(self) -> UsageBudget | None: ...


def picture_of(sweep: Shown, places: Sequence[SweepCell], now: float) -> Picture:
    """Describe a sweep as it stands at a time, in seconds since 1970."""
    grid = grid_of(places, sweep.params)
    counts = tally(place.reading for place in places)
    working = sum(place.reading is not None and place.reading.state is RunState.RUNNING for place in places)
    waiting = counts["live"] - working + (counts["missing"] if sweep.launching else 0)
    rest = [("waiting", waiting), ("paused", counts["paused"]), ("stopped", counts["stopped"])]
    rest += [] if sweep.launching else [(no_run(launching=False), counts["missing"])]
    axis = axis_of((cell.score for _, _, cell in grid.every()), share=grid.share)
    return {
        "name": one_line(sweep.name, 80),
        "live": sweep.launching or counts["live"] > 0,
        "all": counts["cells"],
        "counts": [
            [word, number]
            for word, number in (
                ("done", counts["done"]), ("failed", counts["failed"]), ("at work", working), *rest
            )
            if number or word == "done"
        ],
        "whence": whence_text(sweep.found, sweep.launched),
        "facts": [*_time(grid, places, working, now, launching=sweep.launching), *_money(sweep, grid, places)],
        "row_name": one_line(grid.row_name, 60),
        "column_name": one_line(grid.column_name, 60),
        "rows": list(grid.rows[:MOST_ROWS]),
        "more_rows": max(0, len(grid.rows) - MOST_ROWS),
        "columns": list(grid.columns),
        "metric": one_line(grid.metric, 60),
        "axis": [two_digits(end, share=grid.share) for end in axis] if axis is not None else [],
        "cells": [
            [None if cell is None else _cell(cell, grid, axis, places, sweep.launching) for cell in line]
            for line in grid.cells[:MOST_ROWS]
        ],
        "failures": _failures(grid, places),
    }  # fmt: skip


def _time(
    grid: SweepGrid, places: Sequence[SweepCell], working: int, now: float, *, launching: bool
) -> list[dict[str, Any]]:
    since = {
        place.reading.run_id: max(0.0, now - place.reading.working_since)
        for place in places
        if place.reading is not None and place.reading.working_since is not None
    }
    paces = paces_of(grid, places, since, launching=launching)
    if not any(pace.live or pace.waiting for pace in paces):
        return []
    left = time_left(paces, working)
    if left is None:
        why = "no run has ended yet" if working else "no run is at work"
        return [{"strong": "", "text": f"time left: {why}"}]
    likely, unit = roughly(left.likely)
    low, high = (_in_unit(end, left.likely) for end in (left.low, left.high))
    span = f" ({low} to {high})" if low != high else ""
    return [{"strong": f"about {likely} {unit}", "text": f"left{span}"}]


def _in_unit(seconds: float, of: float) -> str:
    """Say an end of a span in the unit of what is likely."""
    _, unit = roughly(of)
    if unit == "s":
        return str(5 * round(seconds / 5))
    return str(round(seconds / 60)) if unit == "min" else f"{seconds / 3600:.1f}"


def _money(sweep: Shown, grid: SweepGrid, places: Sequence[SweepCell]) -> list[dict[str, Any]]:
    known = [place.reading for place in places if place.reading is not None]
    costs = [reading.cost for reading in known if reading.cost is not None]
    tokens = sum(reading.tokens for reading in known)
    limit = sweep.budget.cost_usd.hard if sweep.budget is not None and sweep.budget.cost_usd is not None else None
    if not costs:
        return [{"strong": money(None, tokens), "text": "used"}] if tokens else []
    spent = sum(costs)
    paces = costs_of(grid, places, launching=sweep.launching)
    goes_on = any(pace.live or pace.waiting for pace in paces)
    expected: Span | None = cost_expected(paces) if goes_on else None
    words = ["spent"]
    if expected is not None:
        words.append(f"{money(expected.likely)} expected ({money(expected.low)} to {money(expected.high)})")
    text = ", ".join(words) + (f", of {money(limit)}" if limit is not None else "")
    unpriced = sum(cell.unpriced for _, _, cell in grid.every())
    text += f"; of {unpriced} no price is known" if unpriced else ""
    return [{"strong": money(spent), "text": text}]


def _cell(
    cell: GridCell, grid: SweepGrid, axis: Axis | None, places: Sequence[SweepCell], launching: bool
) -> dict[str, Any]:
    score = cell.score
    reading = places[cell.places[0]].reading
    state = _state(cell)
    known: Mapping[str, Any] = {}
    if score is not None and score.mean is not None:
        known = {"score": two_digits(score.mean, share=grid.share), "range": range_text(score, share=grid.share)}
        if axis is not None:
            ends = (
                score.mean if score.low is None else score.low,
                score.mean,
                score.mean if score.high is None else score.high,
            )
            known = {**known, "bar": [round(axis.place(end), 4) for end in ends]}
    return {
        "n": cell.places[0],
        "runs": cell.runs,
        "run": reading.run_id if cell.runs == 1 and reading is not None else "",
        "state": state,
        "said": _said(cell, state, launching),
        "cost": money(cell.cost, cell.tokens),
        "final": cell.final,
        **known,
    }


def _state(cell: GridCell) -> str:
    words = (
        (ASKS, cell.asking), ("failed", cell.failed), ("running", cell.working), ("paused", cell.paused),
        ("queued", cell.queued), ("pending", cell.missing), ("stopped", cell.stopped),
    )  # fmt: skip
    return next((word for word, number in words if number), "complete")


def _said(cell: GridCell, state: str, launching: bool) -> str:
    """Say how far the runs of a cell are."""
    if cell.runs == 1:
        return no_run(launching=launching) if cell.missing else state
    parts = [f"{cell.done} of {cell.runs}"]
    parts += [f"{cell.failed} failed"] if cell.failed else []
    parts += [f"{cell.asking} {'asks' if cell.asking == 1 else 'ask'} you"] if cell.asking else []
    parts += [f"{cell.stopped} stopped"] if cell.stopped else []
    return ", ".join(parts)


def _failures(grid: SweepGrid, places: Sequence[SweepCell]) -> dict[str, Any]:
    """Return why runs failed, cell by cell, and how many runs for whose reasons there is no room."""
    told: list[dict[str, Any]] = []
    for row, column, cell in grid.every():
        readings = [reading for n in cell.places if (reading := places[n].reading) is not None]
        for why, number in cell.errors:
            first = next(one for one in readings if (one.error or one.word) == why)
            told.append({"where": grid.label(row, column), "number": number, "why": why, "run": first.run_id})
    left = sum(one["number"] for one in told[MOST_FAILURES:])
    return {"told": told[:MOST_FAILURES], "left": left}


def runs_of(places: Sequence[SweepCell], names: Sequence[str], number: int) -> Picture:
    """Return the runs of the cell that begins with this place: what asks or failed first, then what is at work."""
    grid = grid_of(places, names)
    cell = next((one for _, _, one in grid.every() if one.places[0] == number), None)
    there = [places[n] for n in (cell.places if cell is not None else ())]
    begun = [place for place in there if place.reading is not None]
    ranked = sorted(begun, key=lambda place: _rank(place.reading))
    several = any(place.repeat for place in there)
    return {
        "runs": [
            _run(place, place.reading, grid, several) for place in ranked[:MOST_RUNS] if place.reading is not None
        ],
        "more": max(0, len(ranked) - MOST_RUNS),
    }


def _rank(reading: Reading | None) -> int:
    if reading is None or reading.asks:
        return 0
    return 1 if not reading.live and reading.state not in DONE else 2 if reading.state is RunState.RUNNING else 3


def _run(place: SweepCell, reading: Reading, grid: SweepGrid, several: bool) -> dict[str, str]:
    case = place.params.get(CASE)
    about = [f"case {param_text(case)}"] if case is not None else []
    about += [f"repeat {place.repeat + 1}"] if several else []
    value = place.scores.get(grid.metric)
    return {
        "run": reading.run_id,
        "state": ASKS if reading.asks else reading.word,
        "about": ", ".join(about) or reading.name,
        "score": "" if value is None else f"{value:g}" if grid.share else two_digits(value),
        "cost": money(reading.cost, reading.tokens),
        "error": reading.error,
    }
