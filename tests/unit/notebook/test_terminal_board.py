"""The board in a terminal: the same rows as on a page, answered, stopped, steered, seen and filtered by keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import support
from support import make_plan, make_recovery, make_result, run_id
from textual.widgets import Input, Static

from subagents_nb.domain.policy.permissions import PartShown, PermissionRequest
from subagents_nb.domain.runs.questions import OpenQuestion, Question, Reply
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching import Runs
from subagents_nb.notebook.board.board_list import BoardList
from subagents_nb.notebook.board.terminal_board import OpenedRun, TerminalBoard
from subagents_nb.notebook.board.terminal_rows import answers_of
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.codec import decode
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.seen import is_seen

ASKED = OpenQuestion(
    question_id="q1", text="Which [b]one[/b]?", choices=("all", "none"), asked_at="2026-01-01T10:00:00Z"
)


class Clock:
    """A clock that stands until it is told; a second is enough to have read a question."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def put(
    home: StoreHome, number: int, *, result: Any = None, asks: OpenQuestion | None = None, **plan: Any
) -> RunWriter:
    writer = create_run(home, make_plan(number, **plan), make_recovery(number))
    questions = () if asks is None else (asks,)
    writer.status(support.make_status(number, updated_at=utc_now(), questions=questions), milestone=False)
    if asks is not None:
        writer.mail.question(Question(run_id=run_id(number), **asks.model_dump()))
    if result is not None:
        writer.result(result)
    else:
        hold(home.run(run_id(number)).lock)  # it lives: its process is this one
    return writer


def failed(number: int) -> Any:
    return make_result(number, state=RunState.FAILED, error="it broke", reason="provider")


def shown(board: TerminalBoard) -> list[str]:
    return [str(option.prompt) for option in board.list.options]


def try_out(
    home: StoreHome, act: Callable[[TerminalBoard, Any], Awaitable[None]], size: tuple[int, int] = (120, 30)
) -> None:
    """Run the board with nobody before it but `act`, which presses keys."""
    reader = FileRuns(home)
    runs = Runs(home, [reader.snapshot(one) for one in reader.ids()])

    async def all_of_it() -> None:
        board = TerminalBoard(BoardList({"limit": 20}), runs, clock=Clock())
        async with board.run_test(size=size) as pilot:
            await act(board, pilot)

    asyncio.run(all_of_it())


async def until(pilot: Any, holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        await pilot.pause(0.05)


def test_rows_stand_by_need_and_text_of_others_is_only_text(store_home: StoreHome) -> None:
    put(store_home, 1, asks=ASKED)
    put(store_home, 2)
    put(store_home, 3, result=failed(3))
    put(store_home, 4, result=make_result(4))

    async def act(board: TerminalBoard, pilot: Any) -> None:
        rows = shown(board)
        assert [row.split()[0] for row in rows] == ["asks", "□", "failed,", "□", "working", "□", "done"]
        assert "Which [b]one[/b]?" in rows[1]
        assert "1 all   2 none   w write   asked" in rows[1]
        assert "it broke" in rows[3]
        assert all(len(line) <= 116 for row in rows for line in row.splitlines())
        await pilot.press("d")
        assert len(shown(board)) == 8
        await pilot.press("g")
        assert shown(board)[0].startswith("scout 4")

    try_out(store_home, act)


def test_a_question_is_answered_by_its_digit_once_it_can_have_been_read(store_home: StoreHome) -> None:
    writer = put(store_home, 1, asks=ASKED)
    reply = writer.paths.questions / "q1.reply.json"

    async def act(board: TerminalBoard, pilot: Any) -> None:
        await pilot.press("2")
        assert not reply.exists()  # nobody can have read it yet
        board.clock.now += 1.0
        await pilot.press("2")
        await until(pilot, reply.exists, "the answer")
        answered = decode(reply.read_bytes(), Reply, run_id(1))
        assert (answered.text, answered.answered_by) == ("none", "a terminal")

    try_out(store_home, act)


def test_an_answer_is_written_and_what_is_typed_there_is_no_key(store_home: StoreHome) -> None:
    writer = put(store_home, 1, asks=ASKED)
    reply = writer.paths.questions / "q1.reply.json"

    async def act(board: TerminalBoard, pilot: Any) -> None:
        board.clock.now += 1.0
        await pilot.press("w", *"x2sq", "enter")
        await until(pilot, reply.exists, "the answer")
        assert decode(reply.read_bytes(), Reply, run_id(1)).text == "x2sq"
        assert not board.list.picked

    try_out(store_home, act, (60, 20))


def test_what_is_selected_and_in_sight_is_stopped_and_a_failure_is_seen(store_home: StoreHome) -> None:
    writers = [put(store_home, number, agent="scout") for number in (1, 2)]
    put(store_home, 3, result=failed(3))

    def asked_to_stop(writer: RunWriter) -> bool:
        return any(writer.paths.root.rglob("*stop*"))

    async def act(board: TerminalBoard, pilot: Any) -> None:
        board.clock.now += 1.0
        await pilot.press("e")
        await until(pilot, lambda: is_seen(store_home.run(run_id(3))), "the failure to be seen")
        await until(pilot, lambda: "failed" not in shown(board)[0], "the row to be done")
        board.list.picked = {run_id(1), run_id(2)}
        await pilot.press("slash", *"scout-2", "enter")
        await until(pilot, lambda: len(shown(board)) == 2, "the filter")
        await pilot.press("s")
        await until(pilot, lambda: board.list.picked == {run_id(1)}, "the request")
        await pilot.press("slash", "escape")
        assert board.query_one("#filter", Input).value == ""
        await until(pilot, lambda: len(shown(board)) >= 3, "all rows again")
        assert board.list.picked == {run_id(1)}

    try_out(store_home, act)
    assert [writer.paths.root.name for writer in writers] == [run_id(1), run_id(2)]


def test_a_run_is_opened_and_a_call_allowed_where_all_of_it_is_shown(store_home: StoreHome) -> None:
    part = PartShown(name="command", kind="command", text="make all\n" + "x" * 300)
    call = PermissionRequest(tool="bash", reason="it runs a program", parts=(part,))
    writer = put(store_home, 1, asks=ASKED.model_copy(update={"permission": call, "choices": ()}))
    reply = writer.paths.questions / "q1.reply.json"

    async def act(board: TerminalBoard, pilot: Any) -> None:
        board.clock.now += 1.0
        assert "open it to see all of the call" in shown(board)[1]
        await pilot.press("1")
        await pilot.press("enter")
        screen = board.screen
        assert isinstance(screen, OpenedRun)
        whole = screen.query_one("#whole", Static)
        await until(pilot, lambda: "make all" in str(whole.content), "all of it")
        assert not reply.exists()
        assert "count the rows" in str(whole.content)
        board.clock.now += 1.0
        await pilot.press("1")
        await until(pilot, reply.exists, "the answer")
        assert decode(reply.read_bytes(), Reply, run_id(1)).text == "once"
        await pilot.press("escape")
        assert not isinstance(board.screen, OpenedRun)

    try_out(store_home, act)


def test_a_call_that_is_cut_is_never_allowed_by_a_digit() -> None:
    part = {"name": "command", "kind": "command", "text": "ls", "cut": 7}
    asked = {"id": "q", "text": "May it?", "choices": [], "permission": {"tool": "bash", "parts": [part]}}
    assert answers_of(asked) == []


def test_all_that_are_in_sight_are_selected_by_one_key_and_given_up_by_it(store_home: StoreHome) -> None:
    for number in (1, 2):
        put(store_home, number)
    put(store_home, 3, result=make_result(3))

    async def act(board: TerminalBoard, pilot: Any) -> None:
        await pilot.press("X")
        assert board.list.picked == {run_id(1), run_id(2)}  # what is done is folded
        await pilot.press("X")
        assert board.list.picked == set()

    try_out(store_home, act)
