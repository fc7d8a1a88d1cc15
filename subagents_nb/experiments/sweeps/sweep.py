"""A sweep: one request over a grid of parameters, one run for each combination and repetition.

The same sweep, launched again, finds the runs it has, those at work too, and launches only what is missing, failed or
not to be reused: in a fresh kernel, after a kill, and beside another kernel that sweeps the same grid.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.experiments.sweeps.scheduler import SweepScheduler
from subagents_nb.experiments.sweeps.sweep_cells import DONE, Reading, SweepCell, sweep_line, tally
from subagents_nb.experiments.sweeps.sweep_showing import SweepShowing
from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec, plan_sweep
from subagents_nb.experiments.sweeps.typed_runs import SweptRuns
from subagents_nb.launching import Run, Runs
from subagents_nb.launching.composing.flows import FlowLike
from subagents_nb.launching.following.waiting import WaitInterrupted, cancelled, until_ended, wait_all
from subagents_nb.launching.judging.scoring import Scorer
from subagents_nb.plain_text import plain
from subagents_nb.store import FileRuns, StoreHome, open_home

_LOOK_S = 0.1  # how often an await looks whether all are launched
_NOTHING: Mapping[str, Reading] = MappingProxyType({})
_NO_SCORES: Mapping[str, float] = MappingProxyType({})


def sweep(
    agent: str | FlowLike | None = None,
    task: str | None = None,
    *,
    grid: Mapping[str, Any] | None = None,
    cases: Any = None,
    failed: str | None = None,
    repeat: int = 1,
    name: str | None = None,
    experiment: str | None = None,
    max_parallel: int | None = None,
    usage_budget: Any = None,
    score: Scorer | Sequence[Scorer] = (),
    notes: str = "",
    tags: Sequence[str] = (),
    reuse: str | None = None,
    fresh: bool = False,
    wait: bool = False,
    origin: Origin | None = None,
    **options: Any,
) -> Sweep:
    """Launch a run for each combination of a grid, in its order: the last name changes fastest, repetitions together.

    Runs that this sweep has already are found and not launched again: those at work, and those that a launch would take
    in place of a new one (`reuse`). Failed ones are launched again.

    Args:
        agent: an agent's name, or what `step`, `parallel` and `chain` compose.
        task: what is to be done. `{{name}}` stands for the value of a name of the grid.
        cases: `Cases`, or what they are made of: each is asked in each combination, as `{case.x}` in the task for its
            input `x`. A scorer finds the right answer as `run.case.expected`; no agent gets to see it.
        failed: what a failed run is in comparisons of what is right or wrong: `missing` (if None), or `wrong`.
        grid: lists of values by name. A name is an option of `launch` (model, thinking, temperature, agent, …) or
            stands as `{{name}}` in the task. A mapping in place of a list gives each value a word, for schemas.
        repeat: how often each combination is run.
        name: what the sweep and its runs are called.
        experiment: what its runs belong to; the current experiment, else the name, if None.
        max_parallel: begin a run only when fewer than so many are live; the rest wait in the queue.
        usage_budget: what the whole sweep may use, as for `launch`: once it is passed, no later run is launched, and
            none at work asks its model again. To keep to it, runs are launched from this process as others end, at
            most max_parallel (4) at a time.
        score: functions, or evaluators of pydantic-evals, that judge each run when somebody asks for its end.
        notes, tags: as for `launch`, for all runs.
        reuse: which runs that have ended may stand for their cells, as for `launch`: `tracked`, `complete` or `never`.
        fresh: launch every cell anew, whatever there is.
        wait: block until all have ended.
        options: as for `launch`, for all runs.

    Raises:
        LaunchRefused: with the reasons, for each value of the grid that can't be launched; nothing was started.
        LaunchError, StoreError: a run could not be started; those before it go on, and the same sweep goes on later.
    """
    order = plan_sweep(
        agent, task, grid=grid, cases=cases, failed=failed, repeat=repeat, name=name, experiment=experiment,
        max_parallel=max_parallel, usage_budget=usage_budget, score=score, notes=notes, tags=tags, reuse=reuse,
        origin=origin, **options,
    )  # fmt: skip
    swept = Sweep(open_home(), order, fresh=fresh)
    swept.go_on()
    if wait:
        swept.wait()
    return swept


class Sweep(SweepShowing):
    """A sweep and its runs, in the order of the grid. What it says is read anew each time."""

    def __init__(self, home: StoreHome, order: SweepSpec, *, fresh: bool = False) -> None:
        self._home = home
        self._order = order
        self._filling = SweepScheduler(home, order, fresh=fresh)

    @property
    def name(self) -> str:
        """Return what the sweep is called."""
        return self._order.name or self._order.experiment or "sweep"

    @property
    def digest(self) -> str:
        """Return the sweep's digest, for `runs(sweep=...)`."""
        return self._order.digest

    @property
    def home(self) -> StoreHome:
        """Return the store that holds its runs."""
        return self._home

    @property
    def params(self) -> tuple[str, ...]:
        """Return the names of its parameters."""
        return tuple(axis.name for axis in self._order.axes)

    @property
    def budget(self) -> UsageBudget | None:
        """Return what the whole sweep may use."""
        return self._order.budget

    @property
    def note(self) -> str:
        """Return why it launched fewer runs than it has cells; empty if it did not."""
        return self._filling.note

    @property
    def launching(self) -> bool:
        """Whether further runs are being launched: now, or with a budget as others end."""
        return self._filling.at_work

    @property
    def launched(self) -> int:
        """Return how many of its runs this object launched."""
        return len(self._filling.launched.intersection(self.ids))

    @property
    def found(self) -> int:
        """Return how many of its runs were there already, or were launched by somebody beside it."""
        return len(self._filling.standing.difference(self._filling.launched).intersection(self.ids))

    @property
    def launched_anew(self) -> list[str]:
        """Return why runs that it had did not stand for their cells any more, by the policy of `reuse`."""
        return self._filling.launched_anew()

    @property
    def ids(self) -> list[str]:
        """Return the ids of its runs."""
        return self._filling.ids

    @property
    def runs(self) -> Runs:
        """Return its runs, those at work too. With a schema, `output` of each is of its type."""
        return self.listed(self.ids)

    @property
    def done(self) -> Runs:
        """Return the runs that ended with something to show."""
        return self.listed([run_id for run_id in self.ids if self.read(run_id).state in DONE])

    @property
    def failed(self) -> Runs:
        """Return the runs that ended without."""
        return self.listed([run_id for run_id in self.ids if not self._filling.members.holds(run_id)])

    @property
    def missing(self) -> list[dict[str, Any]]:
        """Return the cells that no run stands for, by their parameters; `sweep` again or `retry` launches these."""
        lost = [cell for key, cell in self._filling.cells if not self._held(key)]
        several = any(cell.repeat for cell in self._order.cells)
        return [{**cell.params, "repeat": cell.repeat} if several else dict(cell.params) for cell in lost]

    def wait(self, timeout: float | None = None) -> bool:
        """Block until all its runs have ended, or for `timeout` seconds; say whether they have.

        Raises:
            WaitInterrupted: somebody interrupted the wait; the runs go on.
            LaunchError, StoreError: a run could not be started meanwhile.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            if not self._filling.join(timeout):
                return False
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ended = wait_all(self._home, self.ids, left)
        except KeyboardInterrupt:
            raise WaitInterrupted(f"the runs of {self.name} go on; the same sweep finds them again") from None
        self._filling.raise_fault()
        for run_id in ended:
            self.handle(run_id)._judge()
        return len(ended) == len(self.ids)

    def __await__(self) -> Generator[Any, None, Sweep]:
        """Wait for the end of all its runs without blocking the event loop; return the sweep. Raises as `wait` does."""
        return self._settled().__await__()

    async def _settled(self) -> Sweep:
        try:
            while self._filling.at_work:
                await asyncio.sleep(_LOOK_S)
            for run_id in self.ids:
                await until_ended(self._home, run_id)
        except asyncio.CancelledError as error:
            raise cancelled(error, f"the runs of {self.name} go on; the same sweep finds them again") from None
        self.wait()  # all have ended: they are judged, and a fault is told
        return self

    def retry(self) -> Sweep:
        """Launch what is missing or failed, and nothing else; return the sweep."""
        self.go_on()
        return self

    def go_on(self) -> None:
        """Launch what is missing or failed: all at once, or with a budget as others end, from a thread of its own."""
        self._filling.launch_missing()

    def foresee(self) -> int:
        """Return for how many cells `go_on` would find a run. Nothing is launched.

        Raises:
            LaunchRefused: a cell can't be planned.
        """
        return self._filling.count_reusable()

    def frame(self, level: str = "runs") -> Any:
        """Return its runs as a table, as `frame` does."""
        from subagents_nb.experiments.frames import frame

        return frame(self.runs, level=level)

    def compare(self, **options: Any) -> Any:
        """Compare its runs by its parameters, as `compare` does."""
        from subagents_nb.experiments.comparing import compare

        return compare(self, **options)

    def counts(self) -> dict[str, int]:
        """Return how many of its cells are done, live, failed, stopped, and without a run."""
        return tally(place.reading for place in self.places())

    def places(self, heard: Mapping[str, Reading] = _NOTHING) -> list[SweepCell]:
        """Return its cells in order, each with how its run stands. A run that was `heard` of is not read."""
        cells = []
        for key, cell in self._filling.cells:
            run_id = self._filling.run_of(key)
            reading = None if run_id is None else heard.get(run_id) or self.read(run_id)
            judged = run_id is not None and reading is not None and reading.state in DONE
            scores = self._filling.members.scores(run_id) if judged and run_id else _NO_SCORES
            cells.append(SweepCell(cell.params, cell.repeat, reading, scores))
        return cells

    def read(self, run_id: str) -> Reading:
        """Return how one of its runs stands; one that can't change any more is not read again."""
        return self._filling.members.read(run_id)

    def handle(self, run_id: str) -> Run:
        """Return the handle of one of its runs."""
        return self._filling.handle(run_id)

    def listed(self, ids: Sequence[str]) -> Runs:
        """Return some of its runs."""
        reader = FileRuns(self._home)
        return SweptRuns(self._home, [reader.snapshot(run_id) for run_id in ids], self.handle)

    def observe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when another run stands for a cell, and when nothing more is launched; return how to stop it.

        It is called on the thread that launches and must not block.
        """
        return self._filling.observe(listener)

    def __len__(self) -> int:
        return len(self._order.cells)

    def __repr__(self) -> str:
        return plain(sweep_line(self.name, self.counts(), self.note, launching=self.launching))

    def _goes_on(self) -> bool:
        return self.launching or self.counts()["live"] > 0

    def _held(self, key: str) -> bool:
        run_id = self._filling.run_of(key)
        return run_id is not None and self._filling.members.holds(run_id)
