"""Contracts of many cells: planned whole, or with another task where that was seen to come to the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.experiments.sweeps.cell_contracts import CellContracts
from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec, plan_sweep


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))


def planned(order: SweepSpec) -> list[tuple[str, ...]]:
    return [tuple(draft.digest for draft in order.planned(cell)[0]) for cell in order.cells]


@pytest.mark.parametrize("task", ["Say {{n}} as {{tone}}", "  Say {{n}}{{tone}}\n", "/skill {{n}}{{tone}}"])
def test_cells_have_the_contracts_that_planning_each_of_them_comes_to(task: str) -> None:
    grid = {"model": ["scripted:echo", "scripted:fail"], "tone": ["dry", "warm"], "n": [1, 2, 3]}
    order = plan_sweep("delegate", task, grid=grid)
    contracts = CellContracts(order)

    assert [contracts.of(cell) for cell in order.cells] == planned(order)
    assert len(set(map(contracts.of, order.cells))) == 12


def test_a_chain_is_planned_cell_by_cell() -> None:
    from subagents_nb import chain, step

    flow = chain(step("delegate", "one {{n}}"), step("delegate", "two"))
    order = plan_sweep(flow, grid={"n": [1, 2, 3]}, model="scripted:echo")
    contracts = CellContracts(order)
    assert [contracts.of(cell) for cell in order.cells] == planned(order)
