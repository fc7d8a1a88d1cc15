"""The cells of a sweep as a grid over two parameters: what stands beside one another, and what each came to. Pure.

Cases and repeats make no cells: they are what a cell is judged by. Of more than two parameters the columns are one, and
each row is a combination of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.comparison.grouping import CASE, param_text
from subagents_nb.experiments.statistics.estimates import Estimate, estimate, is_share
from subagents_nb.experiments.statistics.reducers import mean
from subagents_nb.experiments.sweeps.sweep_cells import DONE, Reading, SweepCell
from subagents_nb.experiments.sweeps.sweep_outlook import Pace

MOST_COLUMNS = 5  # of so many each is wide enough to be read on a page of 800 px
_NO_FAILURE = (*DONE, RunState.STOPPED, RunState.PAUSED)


class GridCell(NamedTuple):
    """One setting: the numbers of its places in the sweep, and what its runs came to."""

    places: tuple[int, ...]
    done: int
    working: int
    queued: int
    failed: int
    stopped: int
    paused: int
    asking: int
    missing: int
    score: Estimate | None  # of the first score that was given; None before one was
    cost: float | None  # so far, of the runs whose cost is known
    tokens: int
    unpriced: int  # how many runs used tokens whose price nobody knows
    errors: tuple[tuple[str, int], ...]  # why runs failed, and how many for that

    @property
    def runs(self) -> int:
        """Return how many runs it shall have."""
        return len(self.places)

    @property
    def final(self) -> bool:
        """Whether its score can't change any more by itself."""
        return not (self.working or self.queued or self.missing)


class SweepGrid(NamedTuple):
    """Rows and columns by what they are called; where a combination was not asked for, there is no cell."""

    row_name: str
    column_name: str  # empty: there is one column
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell | None, ...], ...]
    metric: str  # what the scores are; empty before there is one
    share: bool  # they are shares of 0 and 1

    def every(self) -> Iterable[tuple[int, int, GridCell]]:
        """Yield each cell with its row and column."""
        for row, line in enumerate(self.cells):
            yield from ((row, column, cell) for column, cell in enumerate(line) if cell is not None)

    def label(self, row: int, column: int) -> str:
        """Return what a cell is called."""
        return ", ".join(filter(None, [self.rows[row], self.columns[column] if self.column_name else ""]))


def grid_of(places: Sequence[SweepCell], names: Sequence[str]) -> SweepGrid:
    """Lay out the cells of a sweep with parameters of these names."""
    settings = [name for name in names if name != CASE] or list(names)
    column = _column_of(places, settings)
    across = [name for name in settings if name != column]
    metric = next((name for place in places for name in place.scores), "")
    values = [place.scores[metric] for place in places if metric in place.scores]
    share = is_share(values)
    rows: dict[str, dict[str, list[int]]] = {}
    columns: dict[str, None] = {}
    for number, place in enumerate(places):
        row = " · ".join(param_text(place.params.get(name)) for name in across) or "all"
        at = param_text(place.params.get(column)) if column else ""
        columns[at] = None
        rows.setdefault(row, {}).setdefault(at, []).append(number)
    cells = tuple(
        tuple(_cell(places, line[at], metric, share=share) if at in line else None for at in columns)
        for line in rows.values()
    )
    return SweepGrid(" · ".join(across), column, tuple(rows), tuple(columns), cells, metric, share)


def paces_of(grid: SweepGrid, places: Sequence[SweepCell], now: Mapping[str, float], *, launching: bool) -> list[Pace]:
    """Return how long the runs of each setting took; `now` says of those at work for how long they have been."""
    return [
        Pace(
            [r.seconds for r in there if r.seconds is not None and r.state in DONE],
            [now.get(r.run_id, 0.0) for r in there if r.state is RunState.RUNNING],
            cell.queued + (cell.missing if launching else 0),
        )
        for cell, there in _each(grid, places)
    ]


def costs_of(grid: SweepGrid, places: Sequence[SweepCell], *, launching: bool) -> list[Pace]:
    """Return what the runs of each setting cost."""
    return [
        Pace(
            [r.cost for r in there if r.cost is not None and not r.live],
            [r.cost or 0.0 for r in there if r.state is RunState.RUNNING],
            cell.queued + (cell.missing if launching else 0),
        )
        for cell, there in _each(grid, places)
    ]


def _each(grid: SweepGrid, places: Sequence[SweepCell]) -> Iterable[tuple[GridCell, list[Reading]]]:
    for _, _, cell in grid.every():
        readings = (places[number].reading for number in cell.places)
        yield cell, [reading for reading in readings if reading is not None]


def _column_of(places: Sequence[SweepCell], names: Sequence[str]) -> str:
    """Return the parameter that makes the columns: the last of few values; none where there is but one parameter."""
    if len(names) < 2:
        return ""
    counts = {name: len({param_text(place.params.get(name)) for place in places}) for name in names}
    return next((name for name in reversed(names) if counts[name] <= MOST_COLUMNS), "")


def _cell(places: Sequence[SweepCell], numbers: Sequence[int], metric: str, *, share: bool) -> GridCell:
    readings = [places[number].reading for number in numbers]
    there = [reading for reading in readings if reading is not None]
    states = Counter(reading.state for reading in there)
    bad = [r for r in there if not r.live and r.state not in _NO_FAILURE]
    costs = [r.cost for r in there if r.cost is not None]
    errors = Counter(r.error or r.word for r in bad)
    return GridCell(
        tuple(numbers),
        done=sum(states[state] for state in DONE),
        working=states[RunState.RUNNING],
        queued=states[RunState.QUEUED],
        failed=len(bad),
        stopped=states[RunState.STOPPED],
        paused=states[RunState.PAUSED],
        asking=sum(r.asks for r in there),
        missing=len(readings) - len(there),
        score=_score([places[number] for number in numbers], metric, share=share),
        cost=sum(costs) if costs else None,
        tokens=sum(r.tokens for r in there),
        unpriced=sum(r.cost is None and r.tokens > 0 for r in there),
        errors=tuple(errors.most_common()),
    )


def _score(places: Sequence[SweepCell], metric: str, *, share: bool) -> Estimate | None:
    """Return what the cell came to: the case is the unit, and where there is one alone its repeats are."""
    judged: dict[str, list[float]] = {}
    for place in places:
        if metric in place.scores:
            judged.setdefault(param_text(place.params.get(CASE)), []).append(place.scores[metric])
    if not judged:
        return None
    count = sum(map(len, judged.values()))
    units = next(iter(judged.values())) if len(judged) == 1 else [mean(values) for values in judged.values()]
    return estimate(units, share=share, judgements=count)
