"""A step as a notebook: what is in it, and what can't be."""

from __future__ import annotations

import json
from typing import Any

import nbformat

from subagents_nb.domain.runs.messages import Message, Session
from subagents_nb.domain.texts.transcript import heading, notebook, step_cells

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def said(*messages: tuple[str, str] | Message) -> Session:
    given = (m if isinstance(m, Message) else Message.model_validate({"role": m[0], "text": m[1]}) for m in messages)
    return Session(messages=tuple(given))


def ran(code: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": code.splitlines(True), "execution_count": 1, "outputs": list(outputs)}


def call(code: str, call_id: str = "c") -> Message:
    args = {"code": code}
    return Message(role="call", text=json.dumps(args), tool="python", call_id=call_id, args=args, structured=True)


def result(text: str, call_id: str = "c", tool: str = "python") -> Message:
    return Message(role="result", text=text, tool=tool, call_id=call_id)


def cells(session: Session, *executed: dict[str, Any]) -> list[dict[str, Any]]:
    found = notebook(
        step_cells(session, {"cells": list(executed)} if executed else None), run_id="r-1m8m3kn401j73sqgqmk"
    )
    nbformat.validate(nbformat.from_dict(found))
    return list(found["cells"])


def test_prompt_thinking_calls_and_answer_come_in_order_in_a_valid_notebook() -> None:
    read = Message(role="call", text='{"path":"a"}', tool="read", call_id="c", args={"path": "a"}, structured=True)
    found = cells(said(("user", "count"), ("thought", "hm"), read, result("x,y", tool="read"), ("answer", "**three**")))
    assert [cell["source"] for cell in found] == [
        "### Prompt\n\n```text\ncount\n```",
        "### Thinking\n\n```text\nhm\n```",
        '### Tool call: read\n\n```json\n{\n  "path": "a"\n}\n```',
        "**Result of read**\n\n```text\nx,y\n```",
        "### Answer\n\n**three**",
    ]
    assert len({cell["id"] for cell in found}) == len(found)


def test_python_that_ran_is_a_code_cell_with_what_it_really_gave() -> None:
    gave = {
        "output_type": "execute_result",
        "data": {"text/plain": "6", "image/png": PNG},
        "metadata": {},
        "execution_count": 1,
    }
    found = cells(said(call("2*3"), result("6"), ("answer", "six")), ran("2*3", gave))
    assert [cell["cell_type"] for cell in found] == ["code", "markdown"]
    assert found[0]["outputs"][0]["data"] == {"image/png": PNG, "text/plain": "6"}


def test_a_call_that_did_not_run_is_shown_as_a_call_and_a_cell_of_no_call_still_stands() -> None:
    found = cells(
        said(call("import os", "a"), result("refused", "a"), call("1", "b"), result("1", "b")), ran("1"), ran("2")
    )
    assert [cell["cell_type"] for cell in found] == ["markdown", "markdown", "code", "code"]
    assert [cell["source"] for cell in found[2:]] == ["1", "2"]


def test_cells_of_no_call_stand_before_the_answer() -> None:
    found = cells(said(("user", "count"), ("answer", "three")), ran("1"), ran("2"))
    assert [cell["source"].rpartition("\n")[2] for cell in found] == ["```", "1", "2", "three"]


def test_outputs_that_could_run_are_left_out() -> None:
    bad = {"text/html": "<script>x</script>", "application/javascript": "x", "image/svg+xml": "<svg onload=x>"}
    shown = {"output_type": "display_data", "data": bad, "metadata": {"x": "<b>"}}
    md = {"output_type": "display_data", "data": {"text/markdown": "<img src=x> ![a](b)", "image/png": "<svg>"}}
    found = cells(
        said(), ran("x", shown, md, {"output_type": "stream", "text": ["a\x1b[1m", "b"]}, {"output_type": "odd"}, 3)
    )
    outputs = found[0]["outputs"]
    assert outputs[0]["data"] == {"text/plain": "[left out: application/javascript, image/svg+xml, text/html]"}
    assert outputs[0]["metadata"] == {}
    assert outputs[1]["data"] == {"text/markdown": "&lt;img src=x> !&#91;a]&#40;b)"}
    assert outputs[2:] == [{"output_type": "stream", "name": "stdout", "text": "ab"}]


def test_a_foreign_notebook_breaks_nothing() -> None:
    for executed in ({"cells": 3}, {"cells": [None, {"cell_type": "code", "outputs": 3, "source": 4}]}):
        found = notebook(step_cells(said(("answer", "a")), executed), run_id="r-1m8m3kn401j73sqgqmk")
        nbformat.validate(nbformat.from_dict(found))


def test_secrets_are_taken_out_of_texts_and_of_what_code_gave() -> None:
    gave = {"output_type": "stream", "name": "stdout", "text": "hunter22"}
    session = said(("user", "hunter22"), call("print('hunter22')"), ("answer", "hunter22"))
    executed = {"cells": [ran("print('hunter22')", gave)]}
    found = json.dumps(list(step_cells(session, executed, clean=lambda text: text.replace("hunter22", "-"))))
    assert "hunter22" not in found


def test_a_heading_shows_names_as_words() -> None:
    assert heading("<img> # x", [("model", "a*b"), ("error", "")])["source"] == (
        "# &#60;img&#62; &#35; x\n\n- model: a&#42;b"
    )
