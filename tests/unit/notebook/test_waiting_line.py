"""What a terminal shows while it waits: who, how long, the tool at work and the end of the text, in one line."""

from __future__ import annotations

import io

from support import make_status, until

from subagents_nb.domain.runs.records import ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.views.waiting_line import waiting_line, waiting_text


def working(tail: str = "", *tools: ToolRow) -> Snapshot:
    status = make_status(state="running")
    step = status.steps[0].model_copy(update={"tail": tail, "tail_end": len(tail), "tools": tools})
    return Snapshot(run_id=status.run_id, status=status.model_copy(update={"steps": (step,), "elapsed_s": 0.0}))


class Screen(io.StringIO):
    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def test_text_tool_and_seconds_are_said_in_one_line() -> None:
    grep = ToolRow(call_id="c", name="grep", args="TODO")
    shown = waiting_text([working("First.\nThen \x1b[31mthe end", grep)], 12.3, 100)
    assert "12" in shown and "grep TODO" in shown and shown.endswith("First. Then the end")
    narrow = waiting_text([working("word " * 90, grep)], 12.3, 60)
    assert len(narrow) <= 60 and " · …" in narrow and narrow.endswith("word")
    assert len(waiting_text([working("x")], 1, 10)) <= 10
    assert waiting_text([], 1, 80) == ""
    assert waiting_text([working("x"), working("y")], 1, 80).startswith("2 of 2 go on · ")


def test_it_is_written_over_and_gone_with_the_wait() -> None:
    screen = Screen(tty=True)
    with waiting_line(lambda: [working("so far")], screen):
        until(lambda: "so far" in screen.getvalue())
    assert screen.getvalue().endswith("\r\x1b[K") and "\n" not in screen.getvalue()


def test_a_pipe_gets_nothing_and_what_can_not_be_read_ends_no_wait() -> None:
    pipe = Screen(tty=False)
    with waiting_line(lambda: [working("so far")], pipe):
        pass
    assert pipe.getvalue() == ""

    def unreadable() -> list[Snapshot]:
        raise OSError("gone")

    with waiting_line(unreadable, Screen(tty=True)):
        pass
