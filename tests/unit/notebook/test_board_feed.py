"""What stands on a board as runs go on: those of a state, questions once, failures until seen, and no idle talk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import support
from support import make_plan, make_recovery, make_result, run_id

from subagents_nb.domain.runs.questions import OpenQuestion, Question
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.launching.listing import list_runs
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.board.board_list import BoardList
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.seen import mark_seen
from subagents_nb.store.waiting import line

ASKED = OpenQuestion(question_id="q1", text="Which?", choices=("a", "b"), asked_at="2026-01-01T10:00:00Z")
Begin = Callable[..., tuple[BoardFeed, "Face"]]
Put = Callable[..., RunWriter]


def make_status(number: int, **more: Any) -> RunStatus:
    """Return the status of a run that said so just now."""
    status: RunStatus = support.make_status(number, **{"updated_at": utc_now(), **more})
    return status


class Face:
    """A widget that writes down what it was set to, and how often it was told anything."""

    def __init__(self) -> None:
        self.told: dict[str, list[Any]] = {}
        self.messages = 0

    def set_trait(self, name: str, value: Any) -> None:
        self.told.setdefault(name, []).append(value)

    def hold_sync(self) -> Any:
        self.messages += 1
        return contextlib.nullcontext()


class Clock:
    """A clock that stands until it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def put(store_home: StoreHome) -> Put:
    def put(number: int, *, status: RunStatus | None = None, result: Any = None, **plan: Any) -> RunWriter:
        writer = create_run(store_home, make_plan(number, **plan), make_recovery(number))
        writer.status(status or make_status(number), milestone=False)
        for asked in status.questions if status is not None else ():
            ask(writer, asked)
        if result is not None:
            writer.result(result)
        else:
            hold(store_home.run(run_id(number)).lock)  # it lives: its process is this one
        return writer

    return put


@pytest.fixture
def begin(store_home: StoreHome, clock: Clock) -> Iterator[Begin]:
    """Begin a board of the runs that fit, fed by hand: `feed.tick()`, and `feed.hear` for the watcher."""
    feeds: list[BoardFeed] = []

    def begin(*, limit: int | None = 20, state: str | None = None) -> tuple[BoardFeed, Face]:
        relist = partial(list_runs, store_home, state=state, agent=None, name=None, limit=limit)
        which = BoardList({"limit": limit, "state": state})
        fits = which.fits(store_home) if which.may_hide_failures else None
        feed = BoardFeed(relist, relist(), by_state=which.by_state, fits=fits, clock=clock)
        face = Face()
        feed._face = face
        feeds.append(feed)
        return feed, face

    yield begin
    for feed in feeds:
        feed.drop()


def ask(writer: RunWriter, asked: OpenQuestion) -> None:
    writer.mail.question(Question(run_id=writer.paths.root.name, **asked.model_dump()))


def failed(number: int) -> Any:
    return make_result(number, state=RunState.FAILED, error="it broke", reason="provider")


def test_a_run_enters_and_leaves_a_board_of_a_state_as_it_goes_on(put: Put, begin: Begin, clock: Clock) -> None:
    writer = put(1)
    feed, face = begin(state="asking")
    assert not feed.knows(run_id(1))
    ask(writer, ASKED)
    clock.now = 3
    feed.tick()
    assert face.told["fresh"][-1]["rows"][run_id(1)]["need"] == "asks"
    (writer.paths.questions / "q1.json").unlink()
    clock.now = 6
    feed.tick()
    assert face.told["fresh"][-1]["gone"] == [run_id(1)]


def test_a_question_of_a_run_below_stands_once_and_with_its_root(put: Put, begin: Begin) -> None:
    def root(*questions: OpenQuestion) -> RunStatus:
        below = TreeRow(path="scout-1", run_id=run_id(2), agent="scout", state=RunState.RUNNING, questions=questions)
        return make_status(1, tree=(below,))

    writer = put(1, status=root(ASKED))
    put(2, status=make_status(2, questions=(ASKED,)))
    feed, face = begin()
    rows = feed.state()["rows"]
    assert [rows[run_id(n)]["need"] for n in (1, 2)] == ["asks", "working"]
    assert rows[run_id(1)]["now"] == "scout-1: “Which?”"
    assert (rows[run_id(2)]["word"], rows[run_id(2)]["now"]) == ("running", "its question stands in the row of scout-1")
    assert [bool(one.questions) for one in feed.snapshots] == [True, False]  # the plain table has it once too
    writer.status(root(), milestone=False)  # the root does not show it, whatever is the matter with it: the child does
    feed.look_again(run_id(1))
    feed.tick()
    assert {one: row["need"] for one, row in face.told["fresh"][-1]["rows"].items()} == {
        run_id(1): "working",
        run_id(2): "asks",
    }


def test_a_question_whose_root_is_not_on_the_board_stands_with_who_asks(put: Put, begin: Begin) -> None:
    put(2, status=make_status(2, questions=(ASKED,)))
    assert begin()[0].state()["rows"][run_id(2)]["need"] == "asks"


def test_a_failure_stays_until_it_was_seen_whatever_has_ended_since(
    store_home: StoreHome, put: Put, begin: Begin, clock: Clock
) -> None:
    put(1, result=failed(1))
    feed, face = begin(limit=2)
    for number in (2, 3, 4):
        put(number, result=make_result(number))
    clock.now = 3
    feed.tick()
    assert feed.knows(run_id(1))
    assert face.told["head"][-1]["hidden"] == 1
    later, _ = begin(limit=2)  # a board that is made now finds it, too
    assert not later.knows(run_id(1))
    later.tick()
    assert later.state()["rows"][run_id(1)]["need"] == "failed"
    mark_seen(store_home.run(run_id(1)))
    for clock.now in (6, 9):
        feed.tick()
        later.tick()
    assert not feed.knows(run_id(1))
    assert not later.knows(run_id(1))
    assert not begin(limit=2)[0].knows(run_id(1))


def test_nothing_is_sent_while_nothing_changes_but_in_a_cell(put: Put, begin: Begin, clock: Clock) -> None:
    writer = put(1, status=make_status(1, elapsed_s=1.0))
    put(2, status=make_status(2, questions=(ASKED,)))
    feed, face = begin()
    feed.tick()
    feed.drop()  # the watcher, whose clock is another, says nothing here
    said = face.messages

    def work(elapsed_s: float) -> None:
        writer.status(make_status(1, elapsed_s=elapsed_s), milestone=False)
        feed.look_again(run_id(1))
        feed.tick()

    for clock.now in range(10, 300, 10):
        work(1.0 + clock.now)  # it works, and says no more than that
    assert face.messages == said
    work(10.0)  # the page's clock is far from the run's
    assert face.messages == said + 1
    feed.cell_runs = True  # now a kernel that says nothing is one that hangs
    for _ in range(3):
        clock.now += 10
        feed.tick()
    assert face.messages == said + 4


def test_a_page_that_comes_later_is_told_how_old_a_question_is_now(put: Put, begin: Begin) -> None:
    put(1, status=make_status(1, questions=(ASKED,)))
    feed, _ = begin()
    feed._rows[run_id(1)]["asked_s"] = 0.0
    assert feed.state()["rows"][run_id(1)]["asked_s"] > 1000


def test_a_run_that_waits_says_its_place_in_the_line(
    store_home: StoreHome, put: Put, begin: Begin, clock: Clock
) -> None:
    for number in (1, 2):
        put(number, status=make_status(number, state=RunState.QUEUED))
        line.enter(store_home, run_id(number), 1)
    feed, face = begin()
    assert [feed.state()["rows"][run_id(n)]["now"].partition(" ·")[0] for n in (1, 2)] == [
        "next in line",
        "place 2 in line",
    ]
    for turn in line.standing(store_home)[:1]:
        turn.path.unlink()
    clock.now = 3
    feed.tick()
    assert face.told["fresh"][-1]["rows"][run_id(2)]["now"].startswith("next in line")
    assert FileRuns(store_home).ids() == [run_id(2), run_id(1)]
