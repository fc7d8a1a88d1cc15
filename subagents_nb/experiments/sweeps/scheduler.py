"""Find or launch the run of each cell of a sweep: all at once, or as others end, from a thread of its own."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Iterator

from subagents_nb.domain.plans.grid import CASE, Combination
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import LaunchRefused
from subagents_nb.experiments.sweeps.cell_contracts import CellContracts
from subagents_nb.experiments.sweeps.member_index import Member, MemberIndex
from subagents_nb.experiments.sweeps.sweep_budget import SweepBudget
from subagents_nb.experiments.sweeps.sweep_outlook import Pace
from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec
from subagents_nb.launching import Run
from subagents_nb.launching.following.waiting import wait_all
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.contracts import lock_sweep, mark_sweep, sweep_mark

_PACED = 4  # with a budget for the whole sweep, so many at a time where nobody says
_SLICE_S = 0.25
_log = logging.getLogger(__name__)


class SweepScheduler:
    """Which run stands for which cell. `cells` has each with its key, in the order of the grid."""

    def __init__(self, home: StoreHome, order: SweepSpec, *, fresh: bool = False) -> None:
        self._home = home
        self._order = order
        self.cells = [(cell.key, cell) for cell in order.cells]
        self.members = MemberIndex(home, (order.digest, order.earlier_digest), order.cwd)
        self._budget = None if order.budget is None else SweepBudget(home, order.budget, self.members.usage)
        self._fresh = fresh or order.reuse == "never"
        self._begun = False
        self.note = ""  # why fewer runs were launched than there are cells
        self._refused: dict[str, str] = {}  # by cell: why a run that it had did not stand for it
        self.launched: set[str] = set()
        self.standing: set[str] = set()  # the runs that need not be looked at again, unless they failed
        self._mark = -1  # of the sweep when we last looked, or launched
        self._runs: dict[str, str] = {}  # by cell
        self._cells: dict[str, Combination] = {}  # by run
        self._contracts = CellContracts(order)
        self._launcher: threading.Thread | None = None
        self._at_work = False
        self._fault: BaseException | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def ids(self) -> list[str]:
        """Return the ids of the runs, in the order of their cells."""
        return [run_id for key, _ in self.cells if (run_id := self._runs.get(key)) is not None]

    @property
    def at_work(self) -> bool:
        """Whether further runs are being launched: now, or as others end."""
        return self._at_work

    def launched_anew(self) -> list[str]:
        """Return why cells that had a run were launched anew."""
        return [why for key, why in list(self._refused.items()) if self._runs.get(key) in self.launched]

    def run_of(self, key: str) -> str | None:
        """Return the id of the run that stands for a cell."""
        return self._runs.get(key)

    def handle(self, run_id: str) -> Run:
        """Return the handle of one of the runs; what it came to is of the type that was asked for in its cell."""
        kind, kinds = self._order.types(self._cells[run_id])
        run = Run(self._home, run_id, output_type=kind, output_types=kinds)
        if self._order.by_case:  # as it is now: its right answer may have been mended since the run was launched
            run.case = self._cells[run_id].given[CASE]
        return run

    def observe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when another run stands for a cell, and when nothing more is launched; return how to stop it.

        It is called on the thread that launches and must not block.
        """
        self._listeners.append(listener)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return stop

    def launch_missing(self) -> None:
        """Launch what is missing or failed: all at once, or with a budget as others end, from a thread of its own."""
        if self._at_work:
            return
        self.note = ""
        self._look()
        self._check()
        if self._budget is not None:
            self._budget.count(list(self._paid()))
        self._at_work = True
        if self._budget is None:
            try:
                self._launch_all(lambda: True)
            finally:
                self._rest()
            return
        # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
        self._launcher = threading.Thread(
            target=contextvars.Context().run, args=(self._launch_slowly,), name="subagents-nb-sweep", daemon=True
        )
        self._launcher.start()

    def count_reusable(self) -> int:
        """Return for how many cells `launch_missing` would find a run, without launching or taking any.

        Raises:
            LaunchRefused: a cell with runs can't be planned.
        """
        self._look()
        return sum(self._choose(key, cell)[1] for key, cell in self.cells)

    def costs(self) -> list[Pace]:
        """Return for each setting what its runs cost, and for how many of its cells `launch_missing` would launch one.

        Raises:
            LaunchRefused: a cell with runs can't be planned.
        """
        self._look()
        settings: dict[str, tuple[list[float], list[str]]] = {}
        for key, cell in self.cells:
            run_id, stands = self._choose(key, cell)
            costs, missing = settings.setdefault(self._order.kind_of(cell), ([], []))
            reading = None if run_id is None else self.members.read(run_id)
            if reading is not None and not reading.live and reading.cost is not None:
                costs.append(reading.cost)
            if not stands:
                missing.append(key)
        return [Pace(costs, waiting=len(missing)) for costs, missing in settings.values()]

    def join(self, within_s: float | None) -> bool:
        """Wait until nothing more is launched, at most so long; say whether that is so."""
        if self._launcher is not None:
            self._launcher.join(within_s)
        return not self._at_work

    def raise_fault(self) -> None:
        """Raise what ended the launching early, once."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault

    def _look(self) -> None:
        if self._begun:
            self.members.look()
        else:
            self.members.load_members(forget=self._fresh)
            self._begun = True

    def _check(self) -> None:
        """Plan what differs in more than words once, so that a grid with a hole in it launches nothing.

        A cell that could not be launched now, for want of a key, needs a run that stands for it already.
        """
        problems: dict[str, tuple[str, ...]] = {}
        for key, cell in self.cells:
            kind = self._order.kind_of(cell)
            if kind not in problems:
                problems[kind] = self._contracts.plan(cell)
            if problems[kind] and not self._find(key, cell):
                raise LaunchRefused(problems[kind])

    def _launch_all(self, before: Callable[[], bool]) -> None:
        for key, cell in self.cells:
            if self._find(key, cell):
                continue
            if not before():
                return
            with lock_sweep(self._home, self._order.digest):
                if self._mark != (mark := sweep_mark(self._home, self._order.digest)):  # somebody launches beside us
                    self.members.look()
                    self._mark = mark
                if not self._find(key, cell):
                    self._mark = mark_sweep(self._home, self._order.digest)
                    shares = None if self._budget is None else self._budget.share(self._first_live())
                    run_id = self._order.launch(cell, shares).id
                    self.members.began(run_id)
                    self.launched.add(run_id)
                    self._take(key, cell, run_id, stands=True)

    def _find(self, key: str, cell: Combination) -> bool:
        """Say whether a run stands for the cell; of several the newest, and one that failed if there is no other."""
        run_id, stands = self._choose(key, cell)
        if run_id is not None:
            self._take(key, cell, run_id, stands=stands)
        return stands

    def _choose(self, key: str, cell: Combination) -> tuple[str | None, bool]:
        taken = self._runs.get(key)
        if taken in self.standing and self.members.holds(taken):
            return taken, True
        members = self.members.of(key)
        if not members:
            return None, False
        contracts = self._contracts.of(cell)
        ours = [member.run_id for member in members if member.contract in contracts]
        for run_id in reversed(ours):
            if self.members.holds(run_id):
                why = self.members.reuse_miss(run_id, self._order.reuse)
                if why is None:
                    self._refused.pop(key, None)
                    return run_id, True
                self._refused.setdefault(key, why)
        return (ours[-1] if ours else None), False

    def _take(self, key: str, cell: Combination, run_id: str, *, stands: bool) -> None:
        self._cells[run_id] = cell
        if stands and run_id not in self.standing:
            self.standing.add(run_id)
            if self._order.scorers:
                self.handle(run_id).judge_with(self._order.scorers)
        if self._runs.get(key) != run_id:
            self._runs[key] = run_id
            self._tell()

    def _launch_slowly(self) -> None:
        try:
            self._launch_all(self._may_launch_more)
        except BaseException as fault:  # noqa: BLE001 - told by whoever waits
            self._fault = fault
            self.note = one_line(f"it broke off: {fault}", 300)
        finally:
            self._rest()

    def _rest(self) -> None:
        self._at_work = False
        self._tell()

    def _may_launch_more(self) -> bool:
        """Wait for a place, and say whether the budget leaves room for one more run."""
        limit = self._order.max_parallel or _PACED
        while True:
            live = self.members.live()
            if self._budget is not None and self._budget.is_used_up(self._first_live()):
                left = len(self.cells) - len(self.ids)
                self.note = f"its usage budget is used up, so that {left} of {len(self.cells)} runs were not launched"
                return False
            if len(live) < limit:
                return True
            wait_all(self._home, live[:1], _SLICE_S)

    def _first_live(self) -> str | None:
        return next(iter(self.members.live()), None)

    def _paid(self) -> Iterator[Member]:
        """Yield the runs that count against the budget: those that stand for their cells, and those that failed.

        One whose files changed since was asked something else.
        """
        for key, cell in self.cells:
            self._find(key, cell)
            members = self.members.of(key)
            contracts = self._contracts.of(cell) if members else ()
            for member in members:
                stands = member.run_id in self.standing
                if stands or (member.contract in contracts and not self.members.holds(member.run_id)):
                    yield member

    def _tell(self) -> None:
        for listener in list(self._listeners):
            try:
                listener()
            except Exception:  # noqa: BLE001 - a view's fault must not keep runs from being launched
                _log.exception("a view of a sweep failed")
