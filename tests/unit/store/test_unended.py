"""Runs that may be live are found without a look into each; what does not fit the note is looked into again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.store import StoreHome
from subagents_nb.store.unended import unended

NOTE = "unended.json"


class Store:
    """Runs by the minute, of which some have not ended; remembers which were looked into."""

    def __init__(self, root: Path) -> None:
        self.home = StoreHome(root)
        self.ids = [make_run_id(int(time.time() * 1000) - minute * 60_000, 7) for minute in range(2, 502)]
        self.open = {self.ids[0], self.ids[250], self.ids[-1]}
        self.looked: list[str] = []

    def has_ended(self, run_id: str) -> bool:
        self.looked.append(run_id)
        return run_id not in self.open

    def found(self) -> list[str]:
        self.looked.clear()
        return unended(self.home, self.ids, self.has_ended)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_only_those_that_had_not_ended_are_looked_into_again(store: Store) -> None:
    left = [store.ids[0], store.ids[250], store.ids[-1]]
    assert (store.found(), len(store.looked)) == (left, 500)
    assert (store.found(), store.looked) == (left, left)
    store.open.remove(left[1])
    assert (store.found(), store.looked) == ([left[0], left[2]], left)


def test_later_runs_are_looked_into_and_noted_once_they_are_many(store: Store) -> None:
    store.found()
    later = [make_run_id(int(time.time() * 1000) + minute, 7) for minute in range(9, 0, -1)]
    store.ids = [*later, *store.ids]
    store.open.add(later[4])
    for _ in range(2):
        assert store.found()[0] == later[4]
        assert store.looked == [*later, *sorted(store.open - set(later), reverse=True)]


@pytest.mark.parametrize("change", ["came in between", "was deleted", "a note that is none"])
def test_what_does_not_fit_the_note_is_looked_into_again(store: Store, change: str) -> None:
    store.found()
    if change == "came in between":
        between = make_run_id(int(time.time() * 1000) - 90 * 60_000, 1)
        store.ids = sorted([*store.ids, between], reverse=True)
        store.open.add(between)
    elif change == "was deleted":
        store.ids.remove(store.ids[7])
    else:
        (store.home.root / NOTE).write_text('{"newest": []}')
    assert (set(store.found()), len(store.looked)) == (store.open, len(store.ids))
    store.found()
    assert change == "was deleted" or len(store.looked) == len(store.open)


def test_runs_that_have_just_been_launched_are_noted_for_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.ids = [make_run_id(int(time.time() * 1000) - number, 7) for number in range(500)]
    store.found()
    assert not (tmp_path / NOTE).exists()


def test_a_store_that_can_only_be_read_is_looked_through(store: Store) -> None:
    (store.home.root / NOTE).mkdir()
    assert store.found() == sorted(store.open, reverse=True)
    assert [path.name for path in store.home.root.iterdir()] == [NOTE]
