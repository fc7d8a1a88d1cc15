"""Widgets in layouts of the person's own: fed, heard and asked over comms, while no cell runs and no page polls."""

from __future__ import annotations

import pytest
from kernels import Kernel

pytestmark = pytest.mark.timeout(120)
DASHBOARD = """
import subagents_nb
from ipywidgets import HBox, Output, Tab, VBox
out = Output()
view, sweep_view, table = asks.widget(), swept.widget(), subagents_nb.board(name="asks").widget()
heard = []
view.observe(lambda change: heard.append(change["new"]), "state")
view.observe(lambda change: out.append_stdout(f"{len(change['new'])} open\\n"), "questions")
Tab([HBox([view, view]), VBox([sweep_view, table, out])])
"""


def test_a_dashboard_moves_by_itself_and_answers(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:ask -q --name asks -o asks\nx")
    kernel.ok("%%subagent scout --model scripted:echo --sweep word=a,b -o swept --wait -q\nSay {{word}}")
    shown = kernel.ok(DASHBOARD)
    assert "application/vnd.jupyter.widget-view+json" in shown.shown[-1]
    comm, of_output, of_sweep, of_table = (
        str(kernel.value(f"{one}.model_id")) for one in ("view", "out", "sweep_view", "table")
    )
    assert kernel.value("[sweep_view.done, sweep_view.total, sweep_view.state, table.live]") == [2, 2, "complete", 1]
    kernel.until(lambda: kernel.value("len(view.questions)") == 1, what="the question")
    (question,) = kernel.value("view.questions")
    assert kernel.value("table.questions")[0]["text"] == question["text"]

    kernel.say(comm, {"kind": "answer", "question": question["id"], "text": "blue", "id": "one"})
    kernel.until(lambda: any(told.get("state") == "complete" for told in kernel.told(comm)), what="the end")
    kernel.until(lambda: any("0 open" in str(told) for told in kernel.told(of_output)), what="what reacts to it")
    assert kernel.value("[heard, view.state, asks.state]") == [["complete"], "complete", "complete"]
    kernel.until(lambda: kernel.value("[table.live, table.questions]") == [0, []], what="the board")

    kernel.ok("for one in (view, sweep_view, table): one.close()")
    closed = {m["content"]["comm_id"] for m in kernel.log if m["msg_type"] == "comm_close"}
    assert {comm, of_sweep, of_table} <= closed
