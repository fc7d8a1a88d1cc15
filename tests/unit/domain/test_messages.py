"""A session file says what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from subagents_nb.domain.runs.messages import Session, parse_session


def session(*messages: Any) -> Session:
    return parse_session(ModelMessagesTypeAdapter.dump_json(list(messages)))


def test_what_the_model_and_its_tools_said_comes_in_order() -> None:
    found = session(
        ModelRequest(parts=[UserPromptPart("count")], instructions="be brief"),
        ModelResponse(
            parts=[ThinkingPart("hm"), TextPart("I look."), ToolCallPart("read", {"path": "a"}, tool_call_id="c1")],
            usage=RequestUsage(input_tokens=7, output_tokens=3),
            model_name="m-1",
        ),
        ModelRequest(parts=[ToolReturnPart("read", "text", tool_call_id="c1")], instructions="be brief"),
        ModelResponse(parts=[TextPart("three")], model_name="m-1"),
    )
    assert [(m.role, m.text) for m in found.messages] == [
        ("system", "be brief"),
        ("user", "count"),
        ("thought", "hm"),
        ("answer", "I look."),
        ("call", '{"path": "a"}'),
        ("result", "text"),
        ("answer", "three"),
    ]
    call = found.messages[4]
    assert (call.tool, call.call_id, call.args, call.turn) == ("read", "c1", {"path": "a"}, 1)
    assert [(t.number, t.model, t.usage.input_tokens) for t in found.turns] == [(1, "m-1", 7), (3, "m-1", 0)]


def test_a_structured_answer_is_an_answer_and_its_refusal_a_second_question() -> None:
    found = session(
        ModelResponse(parts=[ToolCallPart("final_result", '{"rows": 3}', tool_call_id="c")]),
        ModelRequest(parts=[ToolReturnPart("final_result", "rows is no text", tool_call_id="c", outcome="retried")]),
        ModelResponse(parts=[ToolCallPart("final_result", '{"rows": "3"}', tool_call_id="d")]),
        ModelRequest(parts=[ToolReturnPart("final_result", "Final result processed.", tool_call_id="d")]),
    )
    assert [(m.role, m.structured) for m in found.messages] == [("answer", True), ("again", False), ("answer", True)]


def test_a_failed_call_says_so() -> None:
    found = session(ModelRequest(parts=[ToolReturnPart("read", "no such file", tool_call_id="c", outcome="failed")]))
    assert [(m.role, m.ok) for m in found.messages] == [("result", False)]


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b"3", b"[" * 200_000])
def test_what_is_no_session_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        parse_session(content)


HOSTILE: list[Any] = [
    None,
    3,
    {"kind": "request", "parts": None},
    {"kind": "request", "parts": [None, 3, {"part_kind": 7}]},
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [1, {"kind": "image-url"}]}]},
    {"kind": "response", "usage": {"input_tokens": -3, "output_tokens": True}, "timestamp": 5, "parts": []},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": 9, "args": [1], "tool_call_id": None}]},
]


def test_foreign_forms_are_left_out_and_never_break_it() -> None:
    found = parse_session(json.dumps(HOSTILE).encode())
    assert [(m.role, m.text) for m in found.messages] == [("user", "1\n[image-url]"), ("call", "[1]")]
    assert found.messages[1].args is None
    assert found.turns[0].usage.input_tokens == 0
