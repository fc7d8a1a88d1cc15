"""A run that only waits counts for nothing, and counts again before it goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from support import run_id

from subagents_nb.runner.tree.place import RunSlot
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.waiting.capacity import slots_taken, take_slot

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places are not counted there")


def test_a_place_is_given_back_whoever_else_has_it_open_and_taken_again(tmp_path: Path) -> None:
    home = StoreHome(tmp_path)
    mine = take_slot(home, 1)
    assert mine is not None and take_slot(home, 1) is None
    also = os.dup(mine)  # as of whoever started the run
    place = RunSlot(home, run_id(), (mine,), 1)
    place.leave()
    assert (place.is_held, slots_taken(home)) == (False, 0)
    other = take_slot(home, 1)
    assert other is not None

    async def go_on() -> None:
        taking = asyncio.ensure_future(place.take())
        await asyncio.sleep(0)
        assert not taking.done(), "another has the place"
        os.close(other)
        assert take_slot(home, 1, waited=True) is None, "it comes before those that have not begun"
        await asyncio.wait_for(taking, 10)

    asyncio.run(go_on())
    assert (place.is_held, slots_taken(home)) == (True, 1)
    os.close(also)
    assert slots_taken(home) == 1


def test_a_run_that_does_not_know_its_place_keeps_it(tmp_path: Path) -> None:
    place = RunSlot(StoreHome(tmp_path), run_id(), (), 1)
    place.leave()
    assert place.is_held
