"""What was asked of a run while it waited for a place is carried out before any of its work."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.runner.flows import Carried, plan_flow, texts

from subagents_nb import chain, step
from subagents_nb.domain.runs.control import Retune
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome, open_home


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def carried(home: StoreHome, tmp_path: Path) -> Carried:
    (tmp_path / "work").mkdir()
    items = (step("scout", "x", model="scripted:echo"), step("scout", "y", model="scripted:echo"))
    return Carried(home, plan_flow(tmp_path / "work", chain(*items)))


def test_a_stop_comes_before_the_first_step(carried: Carried) -> None:
    asked = carried.ask("stop")
    result = carried.carry_out()
    assert (result.state, texts(result)) == (RunState.STOPPED, ["", ""])
    answer = carried.answer(asked)
    assert answer is not None and answer["outcome"] == "accepted"


def test_a_chain_drained_and_retuned_hears_of_both(carried: Carried) -> None:
    asked = [carried.ask("retune", retune=Retune(timeout_s=90)), carried.ask("drain")]
    result = carried.carry_out()
    assert [change.changes for change in result.retunes] == [{"timeout_s": 90.0}]
    assert "x" not in texts(result) and "y" not in texts(result)
    assert [(carried.answer(one) or {})["outcome"] for one in asked] == ["accepted", "accepted"]


def test_a_step_that_is_steered_has_the_text_before_its_first_request(carried: Carried) -> None:
    carried.ask("steer", text="and z", mode="steer", step=0)
    assert texts(carried.carry_out())[0] == "and z"
