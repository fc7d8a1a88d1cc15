"""Widgets that a person holds: said by trait, set by the kernel alone, told until they are closed."""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import traitlets
from ipywidgets import HBox, Tab
from support import make_plan, make_recovery, make_result, make_status, run_id, until

from subagents_nb import board
from subagents_nb.domain.runs.questions import OpenQuestion, Question
from subagents_nb.domain.runs.records import RunStatus, Usage
from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.sweeps.sweep_cells import Reading, SweepCell
from subagents_nb.launching import Run
from subagents_nb.notebook.held.held import TELLER, Held, leave_all
from subagents_nb.notebook.held.held_sweep import figures
from subagents_nb.notebook.views.notices import NOTICES
from subagents_nb.store import RunWriter, StoreHome, create_run
from subagents_nb.store.files.lock import hold

ASKED = OpenQuestion(question_id="q-1", text="Which?", choices=("a", "b"), asked_at="2026-01-01T10:00:00Z")
Put = Callable[..., RunWriter]


@pytest.fixture
def put(store_home: StoreHome) -> Iterator[Put]:
    """Put a run at work into the store, with what it has said."""

    def put(number: int = 1, **status: Any) -> RunWriter:
        writer = create_run(store_home, make_plan(number), make_recovery(number))
        writer.status(said(number, **status), milestone=False)
        hold(store_home.run(run_id(number)).lock)  # it lives: its process is this one
        return writer

    yield put
    leave_all()


@pytest.fixture
def widgets() -> Iterator[list[Held]]:
    """Close these at the end."""
    made: list[Held] = []
    yield made
    for one in made:
        one.close()


def said(number: int = 1, **more: Any) -> RunStatus:
    return make_status(number, **more)


def ask(writer: RunWriter) -> None:
    """Let a run have used something and ask."""
    writer.mail.question(Question(run_id=writer.paths.root.name, **ASKED.model_dump()))
    writer.status(said(usage=Usage(input_tokens=40, output_tokens=2), questions=(ASKED,)), milestone=True)


def heard(widget: Held, *names: str) -> queue.Queue[tuple[str, Any, threading.Thread]]:
    """Return where all that is heard of a widget goes."""
    news: queue.Queue[tuple[str, Any, threading.Thread]] = queue.Queue()
    widget.observe(lambda change: news.put((change["name"], change["new"], threading.current_thread())), list(names))
    return news


def test_a_run_is_heard_of_by_trait_until_it_has_ended_and_says_its_last_state(
    store_home: StoreHome, put: Put, widgets: list[Held]
) -> None:
    writer = put()
    widget = Run(store_home, run_id(1)).widget()
    widgets.append(widget)
    assert (widget.state, widget.tokens, widget.questions) == ("running", 0, [])
    news = heard(widget, "questions", "tokens", "state")
    both: list[tuple[int, int]] = []
    widget.observe(lambda _: both.append((widget.tokens, len(widget.questions))), "questions")

    ask(writer)
    first = {name: new for name, new, _ in (news.get(timeout=10) for _ in range(2))}
    assert first["tokens"] == 42
    assert [one["text"] for one in first["questions"]] == ["Which?"]
    assert both == [(42, 1)]  # all of one reading is there before anybody hears of any

    writer.result(make_result(usage=Usage(input_tokens=40, output_tokens=2)))
    seen = {}
    while seen.get("state") is None:
        name, seen[name], thread = news.get(timeout=10)
        assert thread is not threading.main_thread()
    assert seen["state"] == widget.state == "complete"
    assert widget.questions == []
    late = Run(store_home, run_id(1)).widget()
    widgets.append(late)
    assert (late.state, late.tokens) == (widget.state, widget.tokens)


def test_only_the_kernel_says_how_a_run_stands(store_home: StoreHome, put: Put, widgets: list[Held]) -> None:
    put()
    widgets += [Run(store_home, run_id(1)).widget(), board().widget()]
    for widget in widgets:
        for name in ("tokens", "questions"):
            with pytest.raises(traitlets.TraitError, match="read-only"):
                setattr(widget, name, widget.traits()[name].default())
    (run, table) = widgets
    run.set_state(
        {"state": "complete", "name": "another", "tooltip": "theirs", "no such": 1}
    )  # as a page's message does
    table.set_state({"rows": {"r": {}}, "fresh": {"seq": 9}})
    assert (run.state, run.tooltip) == ("running", "theirs")
    assert run.name != "another"
    assert table.fresh == {}


def test_it_stands_in_layouts_more_than_once_and_ends_when_it_is_closed(store_home: StoreHome, put: Put) -> None:
    writer = put()
    run = Run(store_home, run_id(1))
    first, second = run.widget(), run.widget()
    box = HBox([first, first])
    tab = Tab([box, second])
    told, kept = heard(first, "questions"), heard(second, "questions")
    first.close()
    first.close()
    ask(writer)
    assert kept.get(timeout=10)[0] == "questions"
    assert told.empty()  # it would have heard before: its reading was asked for first
    assert first.comm is None
    gone = weakref.ref(first)
    for one in (tab, box, second):
        one.close()
    del first, box, tab, told, one
    until(lambda: gc.collect() is not None and gone() is None, 10, what="the widget to be freed")


def test_what_observes_may_fail_or_wait_for_another_run_and_no_view_stands_still(
    store_home: StoreHome, put: Put, widgets: list[Held]
) -> None:
    writer, other = put(), put(2)
    widget = Run(store_home, run_id(1)).widget()
    widgets.append(widget)
    waits = threading.Event()
    over: queue.Queue[bool] = queue.Queue()

    def fails(_: Any) -> None:
        raise ValueError("mine")

    def waits_for_another(_: Any) -> None:
        waits.set()
        over.put(Run(store_home, run_id(2)).wait(10))

    widget.observe(fails, "tokens")
    widget.observe(waits_for_another, "questions")
    ask(writer)
    assert waits.wait(10)
    other.result(make_result(2))  # the thread that reads files goes on meanwhile
    assert over.get(timeout=10)
    assert widget.tokens == 42
    assert "ValueError: mine" in NOTICES.take().fault


def test_a_saved_notebook_has_the_card_beside_it(store_home: StoreHome, put: Put, widgets: list[Held]) -> None:
    put().result(make_result())
    widgets += [Run(store_home, run_id(1)).widget(), board().widget()]
    for widget in widgets:
        data, _ = widget._repr_mimebundle_()
        assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
        assert run_id(1) in data["text/html"] or "as of" in data["text/html"]
        assert "0x" not in data["text/plain"]


def test_a_board_says_what_its_runs_need(store_home: StoreHome, put: Put, widgets: list[Held]) -> None:
    put(2)
    writer = put()
    widget = board().widget()
    widgets.append(widget)
    assert (widget.live, widget.failed, widget.questions, widget.tokens) == (2, 0, [], 0)
    news = heard(widget, "questions")
    ask(writer)
    (asked,) = news.get(timeout=10)[1]
    assert asked == {"run": run_id(1), "name": Run(store_home, run_id(1)).name, "text": "Which?"}
    assert widget.tokens == 42
    writer.result(make_result(state=RunState.FAILED, error="it broke"))
    until(lambda: (widget.live, widget.failed, widget.questions) == (1, 1, []), 10, what="the failed run")


def test_of_many_boards_the_oldest_is_closed_and_with_the_extension_all_are(put: Put, widgets: list[Held]) -> None:
    put()
    before = set(threading.enumerate())
    widgets += [board().widget() for _ in range(9)]
    assert [one.comm is None for one in widgets] == [True] + 8 * [False]
    widgets[1].close()
    leave_all()
    assert all(one.comm is None for one in widgets)

    def feeds() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "subagents-nb-board" and one not in before]

    until(lambda: not feeds(), 10, what="the end of their threads")


def test_a_sweep_says_how_far_it_is() -> None:
    def place(number: int, state: RunState | None, **more: Any) -> SweepCell:
        reading = Reading(state, f"one-{number}", run_id=run_id(number), tokens=10, **more) if state else None
        return SweepCell({"n": number}, 0, reading)

    live = [place(1, RunState.COMPLETE), place(2, RunState.RUNNING, asks=True), place(3, None)]
    assert figures(live, goes_on=True) == {
        "state": "running", "done": 1, "failed": 0, "total": 3, "tokens": 20,
        "questions": [{"run": run_id(2), "name": "one-2"}],
    }  # fmt: skip
    over = [place(1, RunState.COMPLETE), place(2, RunState.FAILED)]
    assert (figures(over, goes_on=False)["state"], figures(over, goes_on=False)["failed"]) == ("partial", 1)
    assert figures(over[:1], goes_on=False)["state"] == "complete"


def test_what_fails_on_the_thread_of_views_ends_it_for_none() -> None:
    def fails() -> None:
        raise RuntimeError("a fault of ours")

    done = threading.Event()
    TELLER.tell("a", fails)
    TELLER.tell("b", done.set)
    assert done.wait(10)
