from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import run_id

from subagents_nb.launching.following import observers as hearing
from subagents_nb.launching.following.observers import observe, tell_awaited, tell_launched
from subagents_nb.store import StoreHome

HOME = StoreHome(Path("/nowhere"))


class Ear:
    """Remembers what it hears."""

    def __init__(self, *, fails: bool = False) -> None:
        self.heard: list[tuple[str, str]] = []
        self._fails = fails

    def launched(self, home: StoreHome, run_id: str) -> None:
        self.heard.append(("launched", run_id))
        if self._fails:
            raise RuntimeError("a fault of the face")

    def awaited(self, run_id: str) -> None:
        self.heard.append(("awaited", run_id))


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nobody else listens, and nothing is left unheard."""
    observe(Ear())()
    others, hearing._observers[:] = list(hearing._observers), []
    yield
    hearing._observers[:] = others
    observe(Ear())()


def test_launches_and_waits_are_heard_until_listening_ends() -> None:
    ear = Ear()
    stop = observe(ear)
    tell_launched(HOME, run_id(1))
    tell_awaited([run_id(1)])
    stop()
    stop()
    tell_launched(HOME, run_id(2))
    assert ear.heard == [("launched", run_id(1)), ("awaited", run_id(1))]


def test_who_comes_late_hears_what_nobody_heard_once_and_not_what_was_waited_for() -> None:
    for number in (1, 2):
        tell_launched(HOME, run_id(number))
    tell_awaited([run_id(1)])
    first, second = Ear(), Ear()
    observe(first)
    observe(second)
    assert (first.heard, second.heard) == ([("launched", run_id(2))], [])


def test_what_is_kept_for_a_late_comer_is_bounded() -> None:
    for number in range(300):
        tell_launched(HOME, run_id(number))
    ear = Ear()
    observe(ear)
    assert [one for _, one in ear.heard] == [run_id(number) for number in range(200, 300)]


def test_the_fault_of_one_spoils_neither_the_launch_nor_the_others() -> None:
    observe(Ear(fails=True))
    ear = Ear()
    observe(ear)
    tell_launched(HOME, run_id(1))
    assert ear.heard == [("launched", run_id(1))]
