"""How answers end on the wire: a server on loopback that says of its end what it is told to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subagents_nb.domain.runs.events import ModelAsked, Noticed, ToolEnded, ToolStarted
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES

SCHEMA = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
ENGINE = NativeEngine(patience=NO_RETRIES)


@pytest.mark.parametrize(
    ("end", "reason", "said"),
    [
        ("content_filter", "filtered", "content filter"),
        ("length", "truncated", "token limit"),
        ("abort", "model", "(abort)"),
        ("guardrail_deluxe", "unknown", "'guardrail_deluxe'"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "typed"])
def test_a_cut_answer_is_no_complete_one(
    workshop: Any, plan: Any, wire: Any, end: str, reason: str, said: str, kind: str
) -> None:
    more: dict[str, Any] = {} if kind == "text" else {"output_schema": SCHEMA, "endpoint": {"output_mode": "native"}}
    wire.says('{"rows": 3}' if kind == "typed" else "The first half of the", end=end)

    failure = workshop.fail(ENGINE, plan("count", at=wire.url, **more))

    assert failure.reason == reason and said in failure.message, failure.message
    assert len(wire.bodies) == 1


@pytest.mark.parametrize(("name", "more"), [("list", {}), ("final_result", {"output_schema": SCHEMA})])
def test_a_call_that_is_cut_at_the_limit_is_not_made_again_and_again(
    workshop: Any, plan: Any, wire: Any, name: str, more: dict[str, Any]
) -> None:
    wire.says(calls=[("c1", name, '{"path": "so')], end="length")

    failure = workshop.fail(ENGINE, plan("look", at=wire.url, tools=("list",), **more))

    assert failure.reason == "truncated" and f"call of {name} was cut" in failure.message, failure.message
    assert len(workshop.told(ModelAsked)) == 1


def test_a_server_that_never_says_why_it_ended_is_taken_at_its_last_line(workshop: Any, plan: Any, wire: Any) -> None:
    wire.says(calls=[("c1", "list", '{"path": "."}')], end=None)
    wire.says("two files", end=None)

    outcome = workshop.run(ENGINE, plan("look", at=wire.url, tools=("list",)))

    assert outcome.text == "two files"
    assert [note.code for note in workshop.told(Noticed)] == ["end-unsaid"]


def test_without_its_last_line_such_a_stream_broke_off(workshop: Any, plan: Any, wire: Any) -> None:
    wire.says("two fi", end=None, done=False)

    assert workshop.fail(ENGINE, plan("look", at=wire.url)).reason == "truncated"


@pytest.mark.parametrize("ids", [("call_0", "call_0"), ("x" * 999, "\ud83d"), ("", "")])
def test_calls_have_ids_of_their_own_whatever_the_server_calls_them(
    workshop: Any, plan: Any, wire: Any, ids: tuple[str, str]
) -> None:
    for name in "ab":
        (workshop.cwd / f"{name}.txt").write_text(name * 3)
    for _ in range(2):
        wire.says(calls=[(ids[0], "read", '{"path": "a.txt"}'), (ids[1], "read", '{"path": "b.txt"}')])
    wire.says("done")

    outcome = workshop.run(ENGINE, plan("read both", at=wire.url, tools=("read",)))

    assert outcome.text == "done" and [ended.ok for ended in workshop.told(ToolEnded)] == [True] * 4
    told = [message for message in wire.bodies[-1]["messages"] if message["role"] == "tool"]
    assert len({message["tool_call_id"] for message in told}) == 4
    assert ["aaa" in message["content"] for message in told] == [True, False, True, False]


def test_half_a_character_anywhere_is_replaced_and_the_work_goes_on(workshop: Any, plan: Any, wire: Any) -> None:
    with open(bytes(workshop.cwd) + b"/caf\xe9.csv", "w") as file:
        file.write("row,1\n")
    wire.says("I \ud83d look", calls=[("c1", "list", '{"path": "."}')], end="tool_calls")
    wire.says(calls=[("c2", "grep", '{"pattern": "row"}'), ("c3", "read", '{"path": "a\ud83d.txt"}')])
    wire.says(calls=[("c4", "find", '{"pattern": "*.csv"}')])
    wire.says("seen \ud83d\ude00 \ud83d")
    workshop.inbox.steering.append("only \ud83d files")

    step = plan("look \ud83d", at=wire.url, tools=("list", "grep", "read", "find"), system_prompt="You \udce9 help.")
    outcome = workshop.run(ENGINE, step)

    assert outcome.text == "seen \N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"
    assert "caf\\ufffd.csv" in json.dumps(wire.bodies[-1]) and (workshop.step_dir / "session.json").exists()


def test_what_a_provider_could_not_read_of_its_model_is_asked_for_again(workshop: Any, plan: Any, wire: Any) -> None:
    wire.says(end="MALFORMED_FUNCTION_CALL")
    wire.says("fine")
    assert workshop.run(ENGINE, plan("look", at=wire.url, output_retries=1)).text == "fine"

    wire.turns[1:] = []
    failure = workshop.fail(ENGINE, plan("look", at=wire.url, output_retries=1))
    assert failure.reason == "model" and "(MALFORMED_FUNCTION_CALL)" in failure.message


def test_another_model_that_answers_over_the_wire_ends_the_step_before_its_calls_are_made(
    workshop: Any, plan: Any, wire: Any
) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "list", "input": {}}
    wire.says_as("messages", call, end="tool_use")  # by a model that calls itself m

    failure = workshop.fail(ENGINE, plan("look", at=wire.url, api="messages", tools=("list",), verify_model=True))

    assert failure.reason == "other-model" and len(wire.bodies) == 1 and not workshop.told(ToolStarted)
    assert failure.message.startswith(
        "the provider answered as m, not claude-haiku-5-5; if that is the same, add it to"
    )
    assert failure.usage is not None and failure.usage.input_tokens == 9  # it was paid for


def test_what_a_step_asks_of_its_model_beside_the_task_stands_in_the_request(
    workshop: Any, plan: Any, wire: Any
) -> None:
    asked = {"prompt_cache": "1h", "fast": True, "thinking": "high", "response_aliases": ("m",), "verify_model": True}
    wire.says_as(
        "messages", {"type": "text", "text": "", "deltas": [{"type": "text_delta", "text": "ok"}]}, end="end_turn"
    )

    step = plan("look", "anthropic:claude-opus-5", at=wire.url, api="messages", tools=("list",), **asked)
    outcome = workshop.run(ENGINE, step)

    (body,) = wire.bodies
    assert (outcome.text, outcome.model) == ("ok", "m") and not workshop.told(Noticed)
    assert body["speed"] == "fast" and body["output_config"]["effort"] == "high"
    assert {"type": "ephemeral", "ttl": "1h"} in (body.get("cache_control"), body["tools"][-1].get("cache_control"))
