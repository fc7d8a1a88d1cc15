"""A sweep: one request over a grid of parameters, one run for each combination and repetition.

The same sweep, launched again, finds the runs it has, those at work too, and launches only what is missing or failed:
in a fresh kernel, after a kill, and beside another kernel that sweeps the same grid.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from subagents_nb.domain.grid import Combination
from subagents_nb.domain.plan import Origin
from subagents_nb.domain.usage import Usage
from subagents_nb.domain.words import one_line
from subagents_nb.experiments.grouping import said
from subagents_nb.experiments.members import DONE, Members
from subagents_nb.experiments.orders import Order, make_order, swept_options
from subagents_nb.experiments.scoring import as_scorer
from subagents_nb.launching import Run, Runs
from subagents_nb.launching.flows import FlowLike
from subagents_nb.launching.scoring import Scorer
from subagents_nb.launching.waiting import WaitInterrupted, wait_all
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.sweeps import sweep_lock

_PACED = 4  # with a budget for the whole sweep, so many at a time where nobody says
_SLICE_S = 0.25


def sweep(
    agent: str | FlowLike | None = None,
    task: str | None = None,
    *,
    grid: Mapping[str, Any],
    repeat: int = 1,
    name: str | None = None,
    experiment: str | None = None,
    max_parallel: int | None = None,
    usage_budget: Any = None,
    score: Scorer | Sequence[Scorer] = (),
    notes: str = "",
    tags: Sequence[str] = (),
    fresh: bool = False,
    wait: bool = False,
    origin: Origin | None = None,
    **options: Any,
) -> Sweep:
    """Launch a run for each combination of a grid, in its order: the last name changes fastest, repetitions together.

    Runs that this sweep has already, at work or complete over files that did not change, are found and not launched
    again; failed ones are.

    Args:
        agent: an agent's name, or what `step`, `parallel` and `chain` compose.
        task: what is to be done. `{{name}}` stands for the value of a name of the grid.
        grid: lists of values by name. A name is an option of `launch` (model, thinking, temperature, agent, …) or
            stands as `{{name}}` in the task. A mapping in place of a list gives each value a word, for schemas.
        repeat: how often each combination is run.
        name: what the sweep and its runs are called.
        experiment: what its runs belong to; the current experiment, else the name, if None.
        max_parallel: begin a run only when fewer than so many are live; the rest wait in the queue.
        usage_budget: what the whole sweep may use, as for `launch`: once it is passed, no later run is launched. To
            keep to it, runs are launched from this process as others end, at most max_parallel (4) at a time.
        score: functions that judge each run when somebody asks for its end.
        notes, tags: as for `launch`, for all runs.
        fresh: launch every cell anew, whatever there is.
        wait: block until all have ended.
        options: as for `launch`, for all runs.

    Raises:
        LaunchRefused: with the reasons, for each value of the grid that can't be launched; nothing was started.
        LaunchError, StoreError: a run could not be started; those before it go on, and the same sweep goes on later.
    """
    order = plan_sweep(
        agent, task, grid=grid, repeat=repeat, name=name, experiment=experiment, max_parallel=max_parallel,
        usage_budget=usage_budget, score=score, notes=notes, tags=tags, origin=origin, **options,
    )  # fmt: skip
    swept = Sweep(open_home(), order, fresh=fresh)
    swept.go_on()
    if wait:
        swept.wait()
    return swept


def plan_sweep(
    agent: str | FlowLike | None = None,
    task: str | None = None,
    *,
    grid: Mapping[str, Any],
    repeat: int = 1,
    name: str | None = None,
    experiment: str | None = None,
    max_parallel: int | None = None,
    usage_budget: Any = None,
    score: Scorer | Sequence[Scorer] = (),
    notes: str = "",
    tags: Sequence[str] = (),
    origin: Origin | None = None,
    **options: Any,
) -> Order:
    """Return what `sweep` with the same arguments would launch; nothing is started.

    Raises:
        LaunchRefused: the grid or an option makes no sense.
    """
    return make_order(
        agent,
        task,
        grid,
        repeat,
        name=name,
        experiment=experiment,
        max_parallel=max_parallel,
        budget=usage_budget,
        scorers=tuple(map(as_scorer, score if isinstance(score, list | tuple) else [score])),
        notes=notes,
        tags=tags,
        origin=origin,
        options=options,
    )


class Sweep:
    """A sweep and its runs, in the order of the grid. What it says is read anew each time."""

    def __init__(self, home: StoreHome, order: Order, *, fresh: bool = False) -> None:
        self._home = home
        self._order = order
        self._members = Members(home, order.digest)
        if fresh:
            self._members.look()
            self._members.forget()
        self._runs: dict[str, str] = {}  # by cell
        self._contracts: dict[int, str | None] = {}
        self._launcher: threading.Thread | None = None
        self._fault: BaseException | None = None
        self.note = ""  # why it launched fewer runs than it has cells

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
    def ids(self) -> list[str]:
        """Return the ids of its runs."""
        return [self._runs[cell.key] for cell in self._order.cells if cell.key in self._runs]

    @property
    def runs(self) -> Runs:
        """Return its runs, those at work too."""
        return self._listed(self.ids)

    @property
    def done(self) -> Runs:
        """Return the runs that ended with something to show."""
        return self._listed([run_id for run_id in self.ids if self._members.state(run_id) in DONE])

    @property
    def failed(self) -> Runs:
        """Return the runs that ended without."""
        return self._listed([run_id for run_id in self.ids if not self._members.holds(run_id)])

    @property
    def missing(self) -> list[dict[str, Any]]:
        """Return the cells that no run stands for, by their parameters; `sweep` again or `retry` launches these."""
        lost = [cell for cell in self._order.cells if not self._held(cell)]
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
            if self._launcher is not None:
                self._launcher.join(timeout)
                if self._launcher.is_alive():
                    return False
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ended = wait_all(self._home, self.ids, left)
        except KeyboardInterrupt:
            raise WaitInterrupted(f"the runs of {self.name} go on; the same sweep finds them again") from None
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        for run_id in ended:
            Run(self._home, run_id)._judge()
        return len(ended) == len(self.ids)

    def retry(self) -> Sweep:
        """Launch what is missing or failed, and nothing else; return the sweep."""
        self.go_on()
        return self

    def go_on(self) -> None:
        """Launch what is missing or failed: all at once, or with a budget as others end, from a thread of its own."""
        if self._launcher is not None and self._launcher.is_alive():
            return
        self.note = ""
        self._members.look()
        self._check()
        if self._order.budget is None:
            self._launch_all()
            return
        self._launcher = threading.Thread(target=self._launch_slowly, name=f"subagents-nb-{self.name}", daemon=True)
        self._launcher.start()

    def frame(self, level: str = "runs") -> Any:
        """Return its runs as a table, as `frame` does."""
        from subagents_nb.experiments.frames import frame

        return frame(self.runs, level=level)

    def compare(self, **options: Any) -> Any:
        """Compare its runs by its parameters, as `compare` does."""
        from subagents_nb.experiments.comparing import compare

        return compare(self, **options)

    def counts(self) -> dict[str, int]:
        """Return how many of its cells are done, live, failed, and without a run."""
        states = [self._members.state(run_id) for run_id in self.ids]
        live = sum(state is not None and state.live for state in states)
        done = sum(state in DONE for state in states)
        every = len(self._order.cells)
        return {"cells": every, "done": done, "live": live, "failed": len(states) - done - live,
                "missing": every - len(states)}  # fmt: skip

    def places(self) -> Iterator[tuple[dict[str, str], str, str]]:
        """Yield each cell in order: its parameters in words, its run's state and name; empty without one."""
        for cell in self._order.cells:
            words = {name: said(value) for name, value in cell.params.items()} | {"": str(cell.repeat + 1)}
            run_id = self._runs.get(cell.key)
            if run_id is None:
                yield words, "", ""
            else:
                snapshot = FileRuns(self._home).snapshot(run_id)
                yield words, str(snapshot.state or "unreadable"), one_line(snapshot.name, 80)

    def __len__(self) -> int:
        return len(self._order.cells)

    def __repr__(self) -> str:
        counts = self.counts()
        parts = [f"{counts['done']} of {counts['cells']} done"]
        parts += [f"{counts[word]} {word}" for word in ("live", "failed", "missing") if counts[word]]
        return f"<Sweep {self.name}: {', '.join(parts)}{f'; {self.note}' if self.note else ''}>"

    def _repr_html_(self) -> str:
        # The notebook face is known here by its entry point only: this room never imports it.
        return str(importlib.import_module("subagents_nb.notebook.compare_view").sweep_html(self))

    def _check(self) -> None:
        """Plan what differs in more than words once, so that a grid with a hole in it launches nothing."""
        known, seen = swept_options(), set()
        for cell in self._order.cells:
            kind = repr([(name, word) for name, word in cell.params.items() if name in known])
            if kind not in seen:
                seen.add(kind)
                self._contract(cell)

    def _contract(self, cell: Combination) -> str | None:
        if cell.place not in self._contracts:
            self._contracts[cell.place] = self._order.contract(cell)
        return self._contracts[cell.place]

    def _launch_all(self, before: Callable[[], bool] = lambda: True) -> None:
        for cell in self._order.cells:
            if self._find(cell):
                continue
            if not before():
                return
            with sweep_lock(self._home, self._order.digest):
                self._members.look()
                if not self._find(cell):
                    self._took(cell, self._order.launch(cell).id)

    def _find(self, cell: Combination) -> bool:
        """Say whether a run stands for the cell; of several the newest, and one that failed if there is no other."""
        members = self._members.of(cell.key)
        if not members:
            return False
        contract = self._contract(cell)
        ours = [member.run_id for member in members if member.contract == contract]
        good = (run_id for run_id in reversed(ours) if self._members.holds(run_id))
        held = next((run_id for run_id in good if self._members.fits(run_id)), None)
        if held is not None or ours:
            self._took(cell, held or ours[-1])
        return held is not None

    def _took(self, cell: Combination, run_id: str) -> None:
        if self._runs.get(cell.key) == run_id:
            return
        self._runs[cell.key] = run_id
        if self._order.scorers:
            Run(self._home, run_id).judge_with(self._order.scorers)

    def _held(self, cell: Combination) -> bool:
        run_id = self._runs.get(cell.key)
        return run_id is not None and self._members.holds(run_id)

    def _launch_slowly(self) -> None:
        try:
            self._launch_all(self._may_go_on)
        except BaseException as fault:  # noqa: BLE001 - told by whoever waits
            self._fault = fault
            self.note = one_line(f"it broke off: {fault}", 300)

    def _may_go_on(self) -> bool:
        """Wait for a place, and say whether the budget leaves room for one more run."""
        limit = self._order.max_parallel or _PACED
        while True:
            live = [r for r in self.ids if (state := self._members.state(r)) is not None and state.live]
            if self._order.budget is not None and self._order.budget.judge(self._used()) == "hard-reached":
                left = sum(cell.key not in self._runs for cell in self._order.cells)
                self.note = f"its usage budget is used up, so that {left} of {len(self)} runs were not launched"
                return False
            if len(live) < limit:
                return True
            wait_all(self._home, live[:1], _SLICE_S)

    def _used(self) -> Usage:
        used = Usage()
        for run_id in self.ids:
            used = used.plus(FileRuns(self._home).snapshot(run_id).usage)
        return used

    def _listed(self, ids: Sequence[str]) -> Runs:
        reader = FileRuns(self._home)
        return Runs(self._home, [reader.snapshot(run_id) for run_id in ids])
