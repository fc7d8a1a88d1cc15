"""Which contracts a run of a cell may have. Thousands of cells often differ in the words of one task alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.plans.grid import Combination
from subagents_nb.domain.plans.plan import Draft, digest_of, with_task
from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec


@dataclass(slots=True)
class _Kind:
    """What was planned of the cells of one kind."""

    contracts: tuple[dict[str, Any], ...]  # of its first cell; empty: its cells are planned one by one
    proved: bool = False  # a second cell was planned whole and has the contract that follows from the first


class CellContracts:
    """Plans a cell whole, or takes the contract of one like it with another task, once that was seen to be the same."""

    def __init__(self, order: SweepSpec) -> None:
        self._order = order
        self._known: dict[int, tuple[str, ...]] = {}  # by place in the grid
        self._kinds: dict[str, _Kind] = {}

    def plan(self, cell: Combination) -> tuple[str, ...]:
        """Plan a cell and return why no run of it could begin now.

        Raises:
            LaunchRefused: it can't be planned, here or elsewhere.
        """
        drafts, reasons = self._order.planned(cell)
        contracts = self._known[cell.place] = tuple(draft.digest for draft in drafts)
        name, task = self._order.kind_of(cell), self._order.task_of(cell)
        kind = self._kinds.get(name)
        if kind is None:
            bound = tuple(draft.contract() for draft in drafts) if task is not None and _is_of(drafts, task) else ()
            self._kinds[name] = _Kind(bound)
        elif kind.contracts and not kind.proved and task is not None:
            kind.proved = contracts == _derived(kind, task)
            kind.contracts = kind.contracts if kind.proved else ()
        return reasons

    def of(self, cell: Combination) -> tuple[str, ...]:
        """Return the digests that a run of a cell may have.

        Raises:
            LaunchRefused: it can't be planned, here or elsewhere.
        """
        if cell.place not in self._known:
            kind = self._kinds.get(self._order.kind_of(cell))
            if kind is not None and kind.proved and (task := self._order.task_of(cell)) is not None:
                self._known[cell.place] = _derived(kind, task)
            else:
                self.plan(cell)
        return self._known[cell.place]


def _derived(kind: _Kind, task: str) -> tuple[str, ...]:
    return tuple(digest_of(with_task(contract, task)) for contract in kind.contracts)


def _is_of(drafts: tuple[Draft, ...], task: str) -> bool:
    """Say whether these are plans of one step with this very task, and with nothing else that could depend on it."""
    return all(
        len(one.steps) == 1 and not one.items and one.steps[0].task == task and one.resumes is None for one in drafts
    )
