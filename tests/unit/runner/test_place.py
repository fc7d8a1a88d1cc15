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


def test_whoever_waits_for_an_answer_gives_its_place_back_once_nothing_else_is_at_work(tmp_path: Path) -> None:
    home = StoreHome(tmp_path)
    mine = take_slot(home, 1)
    assert mine is not None
    place, answered = RunSlot(home, run_id(), (mine,), 1), asyncio.Event()
    looks = [False] * 2  # what is found, one look after the other

    async def ask() -> None:
        async with place.away(lambda: looks.pop() if looks else True):
            await answered.wait()

    async def go_on() -> None:
        asking = asyncio.ensure_future(ask())
        while looks:
            await asyncio.sleep(0.01)
        assert place.is_held, "another tool was at work"
        while place.is_held:
            await asyncio.sleep(0.01)
        other = take_slot(home, 1)
        assert other is not None, "whoever is to answer may work"
        answered.set()
        while not (home.capacity / f"back-{run_id()}").exists():
            await asyncio.sleep(0.01)
        assert not asking.done(), "it has no place to go on with"
        os.close(other)
        await asking
        assert place.is_held
        answered.clear()
        asking = asyncio.ensure_future(ask())
        while place.is_held:
            await asyncio.sleep(0.01)
        asking.cancel()
        while not place.is_held:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(go_on(), 20))
    assert slots_taken(home) == 1
