"""The kernel half of the board: rows by need, only what changed goes out, the table is bounded, the page is checked."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id, until

from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.records import RunStatus, ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching import Runs, runs
from subagents_nb.launching.listing import list_runs
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.board.board_list import BoardList
from subagents_nb.notebook.board.board_requests import BoardRequests
from subagents_nb.notebook.board.board_rows import need_of, order, origin_of, row_of
from subagents_nb.notebook.board.board_show import MAX_BYTES, board, bundle
from subagents_nb.notebook.cards.tables import runs_table
from subagents_nb.notebook.full.full_view import OPEN
from subagents_nb.store import FileRuns, StoreHome, create_run
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.seen import is_seen

ASKED = OpenQuestion(question_id="q-1", text="Which?", choices=("a", "b"), asked_at="2026-01-01T10:00:00Z")


class Face:
    """A widget that writes down what it was set to."""

    def __init__(self) -> None:
        self.told: dict[str, list[Any]] = {}

    def set_trait(self, name: str, value: Any) -> None:
        self.told.setdefault(name, []).append(value)

    def hold_sync(self) -> Any:
        return contextlib.nullcontext()


@pytest.fixture
def put(store_home: StoreHome) -> Iterator[Any]:
    """Put a run into the store: at work, unless its last word is given."""

    def put(number: int, *, status: RunStatus | None = None, result: Any = None, **plan: Any) -> str:
        writer = create_run(store_home, make_plan(number, **plan), make_recovery(number))
        writer.status(status or make_status(number), milestone=False)
        if result is not None:
            writer.result(result)
        else:
            hold(store_home.run(run_id(number)).lock)  # it lives: its process is this one
        return run_id(number)

    yield put


def feed_of(home: StoreHome, *snapshots: str) -> BoardFeed:
    reader = FileRuns(home)

    def relist() -> Runs:
        ids = snapshots or tuple(reader.ids())
        return Runs(home, [reader.snapshot(one) for one in ids])

    return BoardFeed(relist, relist())


def failed(number: int) -> Any:
    return make_result(number, state=RunState.FAILED, error="it broke", reason="provider")


def snapshot_of(number: int, **more: Any) -> Snapshot:
    plan = make_plan(number)
    return Snapshot.model_validate({"run_id": plan.run_id, "plan": plan, "status": make_status(number), **more})


def test_rows_stand_by_need_and_questions_oldest_first() -> None:
    later = ASKED.model_copy(update={"asked_at": "2026-01-01T11:00:00Z"})
    queued = RunState.QUEUED
    snapshots = [
        snapshot_of(1, status=make_status(1, questions=(later,))),
        snapshot_of(2, status=make_status(2, questions=(ASKED,))),
        snapshot_of(3),
        snapshot_of(4, status=make_status(4, state=queued)),
        snapshot_of(5, status=make_status(5, state=queued)),
        snapshot_of(6, result=failed(6)),
        snapshot_of(7, result=make_result(7)),
    ]
    rows = order([row_of(one, origin_of(one.plan, one.run_id), seen=False) for one in snapshots])
    needs = ["asks", "asks", "failed", "working", "waiting", "waiting", "done"]
    stood = [(row["need"], row["id"]) for row in rows]
    assert stood == list(zip(needs, map(run_id, (2, 1, 6, 3, 4, 5, 7)), strict=True))
    assert rows[0]["question"] == {"id": "q-1", "text": "Which?", "choices": ["a", "b"]}
    assert rows[2]["now"] == "it broke"
    assert need_of(snapshots[5], seen=True) == "done"


def test_only_what_changed_goes_out_and_new_runs_are_found(store_home: StoreHome, put: Any) -> None:
    put(1)
    now, face = [0.0], Face()
    reader = FileRuns(store_home)

    def relist() -> Runs:
        return Runs(store_home, [reader.snapshot(one) for one in reader.ids()])

    feed = BoardFeed(relist, relist(), clock=lambda: now[0])
    feed._face = face
    feed.tick()
    assert "fresh" not in face.told
    assert face.told["head"][0].keys() == {"taken", "limit", "hidden", "today", "sent", "got", "cost"}
    feed.hear(reader.snapshot(run_id(1)).model_copy(update={"result": failed(1)}))
    put(2)
    now[0] += 2
    feed.tick()
    (fresh,) = face.told["fresh"]
    assert {one: row["need"] for one, row in fresh["rows"].items()} == {run_id(1): "working", run_id(2): "working"}
    now[0] += 2
    feed.tick()
    assert len(face.told["fresh"]) == 1
    assert feed.knows(run_id(2))
    feed.drop()


def test_a_run_that_is_listed_no_more_is_gone(store_home: StoreHome, put: Any) -> None:
    put(1, result=make_result(1))
    listed = [run_id(1)]
    reader, face = FileRuns(store_home), Face()

    def relist() -> Runs:
        return Runs(store_home, [reader.snapshot(one) for one in listed])

    feed = BoardFeed(relist, relist())
    feed._face = face
    listed.clear()
    feed.tick()
    assert face.told["fresh"][0] | {"seq": 0} == {"seq": 0, "rows": {}, "gone": [run_id(1)]}
    assert not feed.knows(run_id(1))


def test_a_page_may_ask_only_about_runs_of_the_board(store_home: StoreHome, put: Any) -> None:
    put(1, result=failed(1))
    put(2, result=failed(2))
    feed = feed_of(store_home, run_id(1))
    requests, told = BoardRequests(feed, lambda: {"text/plain": "table"}), queue.SimpleQueue[dict[str, Any]]()
    strange: tuple[object, ...] = (
        None, {"kind": "seen"}, {"kind": "seen", "run": "../x"}, {"kind": "open", "run": run_id(2)},
        {"kind": "drop", "run": run_id(1)}, {"kind": "stop", "run": [1]},
    )  # fmt: skip
    for content in strange:
        requests.hear(content, told.put)
    requests.hear({"kind": "card"}, told.put)
    assert told.get(timeout=10) == {"kind": "card", "data": {"text/plain": "table"}}
    requests.hear({"kind": "seen", "run": run_id(1)}, told.put)
    until(lambda: feed.state()["rows"][run_id(1)]["need"] == "done", 10, what="the run that was seen")
    assert is_seen(store_home.run(run_id(1)))
    assert not is_seen(store_home.run(run_id(2)))
    requests.hear({"kind": "stop", "run": run_id(1), "id": "a1"}, told.put)
    answer = told.get(timeout=10)
    assert (answer["kind"], answer["run"], answer["text"]) == ("ack", run_id(1), "It is failed already.")
    assert told.empty()


def test_a_run_of_the_board_is_opened_in_full_and_closed_again(store_home: StoreHome, put: Any) -> None:
    put(1, result=failed(1))
    put(2, result=failed(2))
    requests = BoardRequests(feed_of(store_home, run_id(1)), dict)
    requests.hear({"kind": "full", "run": run_id(2), "token": "f00000002"}, print)
    for _ in range(2):  # as one that was sent twice
        requests.hear({"kind": "full", "run": run_id(1), "token": "f00000001"}, print)
    widget = until(lambda: OPEN._widgets.get("f00000001"), 10, what="the run in full")
    until(lambda: is_seen(store_home.run(run_id(1))), 10, what="the failure that was read in place")
    assert not is_seen(store_home.run(run_id(2)))
    assert widget.told["head"]["error"] == "it broke"
    assert widget.model_id == widget.token == "f00000001"
    assert list(OPEN._widgets) == ["f00000001"]
    requests.hear({"kind": "shut", "token": "f00000001"}, print)
    assert OPEN._widgets == {}


def test_a_long_error_costs_a_row_next_to_nothing() -> None:
    """What is not shown is not gone through: a megabyte took 33 ms in each row, at each change."""
    long = "\x1b[31mbroken\x1b[0m " * 500_000
    error = snapshot_of(1, result=make_result(1, state=RunState.FAILED, error=long, reason="provider"))
    spent = []
    for _ in range(5):
        began = time.process_time()
        row = row_of(error, origin_of(error.plan, error.run_id), seen=False)
        spent.append(time.process_time() - began)
    assert row["now"].startswith("broken broken")
    assert len(row["now"]) == 200
    assert row["now"].endswith("…")
    assert min(spent) < 0.01


def test_what_a_notebook_keeps_is_bounded_and_says_as_of_when(store_home: StoreHome, put: Any) -> None:
    for number in range(1, 61):
        put(
            number, result=make_result(number, name="n" * 60, error="e" * 500, state=RunState.FAILED, reason="provider")
        )
    kept = bundle(feed_of(store_home).snapshots, 3, "token")
    assert len(kept["text/html"].encode()) <= MAX_BYTES
    assert "as of 2" in kept["text/html"]
    assert "not shown" in kept["text/plain"]


def test_a_board_is_a_list_of_runs_too(store_home: StoreHome, put: Any, capsys: pytest.CaptureFixture[str]) -> None:
    put(1, result=make_result(1))
    shown = board(state="complete")
    assert [run.id for run in shown] == runs().ids == [run_id(1)]
    shown._ipython_display_()  # a terminal shows it as text
    assert "scout-1" in capsys.readouterr().out
    assert runs_table(shown.snapshots) is not None


def test_a_live_run_that_is_opened_still_has_an_end_to_be_seen(store_home: StoreHome, put: Any) -> None:
    put(1, status=make_status(1))
    requests = BoardRequests(feed_of(store_home), dict)
    requests.hear({"kind": "full", "run": run_id(1), "token": "f00000003"}, print)
    until(lambda: OPEN._widgets.get("f00000003"), 10, what="the run in full")
    assert not is_seen(store_home.run(run_id(1)))
    requests.hear({"kind": "shut", "token": "f00000003"}, print)


def test_a_row_says_which_call_is_at_work_so_long() -> None:
    seen = Attention(kind="long-tool", text="The tool bash is at work for 240 s.", since_s=0.0)
    tools = (ToolRow(call_id="c", name="bash", args="make linkcheck"),)
    step = make_status(1).steps[0].model_copy(update={"tools": tools})
    one = snapshot_of(
        1, status=make_status(1).model_copy(update={"attention": seen, "steps": (step,), "elapsed_s": 300.0})
    )
    assert row_of(one, origin_of(one.plan, one.run_id), seen=False)["now"].endswith(" min. · make linkcheck")


def test_what_has_ended_last_is_on_a_new_board_however_long_ago_it_was_launched(
    store_home: StoreHome, put: Any
) -> None:
    for number in (4, 3, 2, 1):  # the first that was launched ends last
        put(number, result=make_result(number))
        os.utime(store_home.run(run_id(number)).result, ns=(0, (10 - number) * 10**9))
    put(5)
    shown = BoardList({"limit": 2}).list(list_runs(store_home, state=None, agent=None, name=None, limit=2))
    assert shown.ids == [run_id(5), run_id(2), run_id(1)]
    assert shown.hidden == 2
    nobody = BoardList({"limit": 2, "agent": "nobody"})
    assert nobody.list(list_runs(store_home, state=None, agent="nobody", name=None, limit=2)).ids == []


def test_rows_that_are_over_stand_by_their_ends() -> None:
    ends = {1: "2026-01-01T12:00:00Z", 2: "2026-01-01T11:00:00Z", 3: "2026-01-01T11:30:00+00:00"}
    over = [snapshot_of(n, result=make_result(n).model_copy(update={"ended_at": at})) for n, at in ends.items()]
    rows = order([row_of(one, origin_of(one.plan, one.run_id), seen=False) for one in over])
    assert [row["id"] for row in rows] == [run_id(1), run_id(3), run_id(2)]
