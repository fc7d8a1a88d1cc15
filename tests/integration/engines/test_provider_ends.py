"""What Anthropic's and Google's wires say in their own way: the words for an end, signatures, turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subagents_nb.domain.runs.events import ThoughtStreamed, ToolEnded, ToolStarted
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES

ENGINE = NativeEngine(patience=NO_RETRIES)
SIGNATURE = "c2lnbmVk"
both = pytest.mark.parametrize("api", ["messages", "gemini"])


def words(api: str, text: str) -> dict[str, Any]:
    if api == "gemini":
        return {"text": text}
    return {"type": "text", "text": "", "deltas": [{"type": "text_delta", "text": text}]}


def thought(api: str, text: str) -> list[dict[str, Any]]:
    if api == "gemini":
        return [{"text": text, "thought": True}]
    deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": SIGNATURE}]
    return [{"type": "thinking", "thinking": "", "signature": "", "deltas": deltas}]


def call(api: str, name: str, **args: Any) -> dict[str, Any]:
    if api == "gemini":
        return {"functionCall": {"name": name, "args": args}, "thoughtSignature": SIGNATURE}
    deltas = [{"type": "input_json_delta", "partial_json": json.dumps(args)}]
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}, "deltas": deltas}


def ends(api: str) -> tuple[str, str]:
    return ("STOP", "STOP") if api == "gemini" else ("tool_use", "end_turn")


@pytest.mark.parametrize(
    ("api", "end", "reason", "said"),
    [
        ("messages", "max_tokens", "truncated", "token limit"),
        ("messages", "model_context_window_exceeded", "context", "context is full"),
        ("messages", "refusal", "filtered", "refus"),
        ("messages", "guardrail_deluxe", "unknown", "'guardrail_deluxe'"),
        ("messages", None, "truncated", "broke off"),
        ("gemini", "MAX_TOKENS", "truncated", "token limit"),
        ("gemini", "SAFETY", "filtered", "(SAFETY)"),
        ("gemini", "RECITATION", "filtered", "(RECITATION)"),
        ("gemini", "LANGUAGE", "model", "(LANGUAGE)"),
        ("gemini", "OTHER", "unknown", "'OTHER'"),
        ("gemini", None, "truncated", "broke off"),
    ],
)
def test_a_cut_answer_is_no_complete_one(
    workshop: Any, plan: Any, wire: Any, api: str, end: str | None, reason: str, said: str
) -> None:
    wire.says_as(api, words(api, "The first half of the"), end=end)

    failure = workshop.fail(ENGINE, plan("count", at=wire.url, api=api))

    assert failure.reason == reason and said in failure.message, failure.message
    assert len(wire.bodies) == 1


def test_a_refusal_says_its_ground(workshop: Any, plan: Any, wire: Any) -> None:
    ground = {"type": "refusal", "category": "cyber", "explanation": "It is about weapons"}
    wire.says_as("messages", end="refusal", stop_details=ground)

    failure = workshop.fail(ENGINE, plan("count", at=wire.url, api="messages"))

    assert failure.reason == "filtered" and "refused to answer: It is about weapons" in failure.message


def test_a_prompt_that_was_blocked_says_so(workshop: Any, plan: Any, wire: Any) -> None:
    wire.says_as("gemini", end=None, promptFeedback={"blockReason": "PROHIBITED_CONTENT"})

    failure = workshop.fail(ENGINE, plan("count", at=wire.url, api="gemini"))

    assert failure.reason == "filtered" and "PROHIBITED_CONTENT" in failure.message, failure.message
    assert len(wire.bodies) == 1


def test_an_error_within_a_stream_has_its_reason(workshop: Any, plan: Any, wire: Any) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    wire.turns.append(f"event: error\ndata: {json.dumps(error)}\n\n")

    failure = workshop.fail(ENGINE, plan("count", at=wire.url, api="messages"))

    assert failure.reason == "provider" and "Overloaded" in failure.message, failure.message


@both
def test_signatures_of_thoughts_go_back_in_the_turn_and_from_a_stored_session(
    workshop: Any, plan: Any, wire: Any, api: str
) -> None:
    calls, stop = ends(api)
    wire.says_as(api, *thought(api, "I ponder"), call(api, "list", path="."), end=calls)
    wire.says_as(api, words(api, "two files"), end=stop)
    workshop.on = lambda event: workshop.inbox.steering.append("be brief") if isinstance(event, ToolStarted) else None
    step = plan("look", at=wire.url, api=api, level=":high", tools=("list",))

    assert workshop.run(ENGINE, step).text == "two files"
    assert [e.text for e in workshop.told(ThoughtStreamed)] == ["I ponder"] and workshop.told(ToolEnded)[0].ok
    workshop.on = lambda _event: None
    workshop.history = workshop.step_dir.parent / "earlier.json"
    (workshop.step_dir / "session.json").rename(workshop.history)

    assert workshop.run(ENGINE, plan("go on", at=wire.url, api=api, level=":high", tools=("list",))).text == "two files"

    for body in wire.bodies[1:]:
        sent = json.dumps(body)
        assert sent.count(SIGNATURE) == 1 and sent.count("be brief") == 1
        if api == "messages":
            asked, answered = body["messages"][1:3]
            assert [block["type"] for block in asked["content"]] == ["thinking", "tool_use"]
            assert [block["type"] for block in answered["content"]] == ["tool_result", "text"]


@both
def test_a_session_of_one_provider_is_gone_on_from_with_another(workshop: Any, plan: Any, wire: Any, api: str) -> None:
    other = "gemini" if api == "messages" else "messages"
    wire.says_as(api, *thought(api, "I ponder"), call(api, "list", path="."), end=ends(api)[0])
    wire.says_as(api, words(api, "two files"), end=ends(api)[1])
    workshop.run(ENGINE, plan("look", at=wire.url, api=api, level=":high", tools=("list",)))
    workshop.history = workshop.step_dir.parent / "earlier.json"
    (workshop.step_dir / "session.json").rename(workshop.history)
    wire.says_as(other, words(other, "still two"), end=ends(other)[1])

    outcome = workshop.run(ENGINE, plan("go on", at=wire.url, api=other, tools=("list",)))

    assert outcome.text == "still two"
    assert "two files" in json.dumps(wire.bodies[-1]) and SIGNATURE not in json.dumps(wire.bodies[-1])
