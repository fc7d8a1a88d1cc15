"""The deterministic twin as a partner: it hears, asks, waits, and goes on from an earlier run."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import Any

import pytest

from subagents_nb.domain.runs.events import (
    FileChanged,
    ModelAsked,
    Noticed,
    TextStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from subagents_nb.runner.engines.engine import FixedLimits
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine

ENGINE = ScriptedEngine()


@pytest.fixture
def script(workshop: Any, plan: Any) -> Any:
    """Write a script into the workspace and return a step that plays it."""

    def write(*items: Any, **more: Any) -> Any:
        (workshop.cwd / "demo.json").write_text(json.dumps(items))
        return plan("scripted:demo.json", **more)

    return write


def go_on(workshop: Any) -> None:
    """Let the next run go on from the session that was just saved."""
    workshop.more["history"] = workshop.step_dir.parent / "earlier.json"
    (workshop.step_dir / "session.json").rename(workshop.more["history"])


def test_steerable_says_what_it_heard_and_ends_when_it_is_told_to(workshop: Any, plan: Any) -> None:
    def talk(event: Any) -> None:
        if isinstance(event, TextStreamed) and "tick 1\n" in event.text:
            workshop.inbox.put("look left", "look right")
        elif isinstance(event, TextStreamed) and "look right" in event.text:
            workshop.inbox.put("now finish")

    workshop.on = talk

    outcome = workshop.run(ENGINE, plan("scripted:steerable"))

    assert outcome.text.replace("tick 2\n", "") == "tick 1\nheard: look left\nheard: look right\nheard: now finish\n"
    assert outcome.usage.requests == 3 and [e.number for e in workshop.told(ModelAsked)] == [1, 2, 3]
    said = [m["parts"][0]["content"] for m in json.loads((workshop.step_dir / "session.json").read_text())]
    assert [text for text in said if "\n" not in text] == ["count the rows", "look left", "look right", "now finish"]


def test_ask_asks_with_choices_and_says_the_answer(workshop: Any, plan: Any) -> None:
    asked: list[Any] = []

    async def person(text: str, choices: Any = (), *, call_id: str = "") -> str:
        asked.append((text, tuple(choices), call_id))
        return "yes"

    workshop.more["ask"] = person

    outcome = workshop.run(ENGINE, plan("scripted:ask", tool_timeout_s=0.001))

    assert asked == [("Go on?", ("yes", "no"), "call-1")]
    assert outcome.text == "The answer was: yes"
    assert workshop.told(ToolStarted) == [ToolStarted("call-1", "ask", "Go on?")]
    assert workshop.told(ToolEnded)[0].ok and workshop.open_tools == {}


def test_a_cancelled_question_leaves_the_script_without_an_answer(workshop: Any, plan: Any) -> None:
    async def person(text: str, choices: Any = (), *, call_id: str = "") -> str:
        workshop.open_tools[call_id]()
        await asyncio.Event().wait()
        return text

    workshop.more["ask"] = person

    assert workshop.run(ENGINE, plan("scripted:ask")).text == "Nobody answered."


def test_a_question_without_anybody_to_ask_is_a_matter_of_setup(workshop: Any, plan: Any) -> None:
    assert workshop.fail(ENGINE, plan("scripted:ask")).reason == "setup"


def test_a_script_waits_for_a_steer_and_asks_its_own_questions(workshop: Any, script: Any) -> None:
    async def person(text: str, choices: Any = (), *, call_id: str = "") -> str:
        workshop.inbox.put("left!")
        return choices[1]

    workshop.more["ask"] = person
    step = script({"ask": "Where?", "choices": ["up", "down"]}, {"text": ", then "}, {"await_steer": True})

    assert workshop.run(ENGINE, step).text == "down, then left!"


def test_a_steer_that_no_request_is_left_for_is_never_awaited(workshop: Any, script: Any) -> None:
    workshop.inbox.put("unheard")

    failure = workshop.fail(ENGINE, script({"await_steer": True}, max_requests=1))

    assert failure.reason == "budget" and workshop.inbox.taken == []


def test_follow_ups_are_echoed_as_turns_of_their_own(workshop: Any, plan: Any) -> None:
    workshop.inbox.put("and two", mode="follow-up")
    workshop.on = lambda event: (
        workshop.inbox.put("and three") if isinstance(event, ModelAsked) and event.number == 2 else None
    )

    outcome = workshop.run(ENGINE, plan("scripted:echo", task="say one"))

    assert workshop.text == "say one\n\nand two\n\nand three"
    assert outcome.text == "and three" and outcome.usage.requests == 3


def test_without_a_request_left_no_follow_up_is_taken(workshop: Any, plan: Any) -> None:
    workshop.inbox.put("and two", mode="follow-up")

    assert workshop.run(ENGINE, plan("scripted:echo", task="say one", max_requests=1)).text == "say one"
    assert workshop.inbox.taken == []


def test_echo_says_how_many_messages_came_before(workshop: Any, plan: Any) -> None:
    workshop.run(ENGINE, plan("scripted:echo", task="one"))
    go_on(workshop)

    first = workshop.run(ENGINE, plan("scripted:echo", task="two"))
    go_on(workshop)
    second = workshop.run(ENGINE, plan("scripted:echo", task="three"))

    assert (first.text, second.text) == ("[2 earlier] two", "[4 earlier] three")
    assert second.usage.requests == 1
    assert [message.kind for message in workshop.messages] == ["request", "response"] * 3


def test_the_twin_goes_on_from_a_models_session_too(workshop: Any, plan: Any, plays: Any) -> None:
    from subagents_nb.runner.engines.native.native import NativeEngine

    workshop.run(NativeEngine(plays([("list", {})], ["empty"])), plan(tools=("list",)))
    go_on(workshop)

    assert workshop.run(ENGINE, plan("scripted:echo", task="x")).text == "[4 earlier] x"
    assert len(workshop.messages) == 6


def test_a_model_goes_on_from_the_twins_session_with_its_calls(
    workshop: Any, plan: Any, plays: Any, script: Any
) -> None:
    from subagents_nb.runner.engines.native.native import NativeEngine

    calls = ({"think": "hm"}, {"tool": "list", "result": "a"}, {"tool": "bash", "refused": "no"}, {"text": "one"})
    workshop.run(ENGINE, script(*calls))
    go_on(workshop)
    workshop.run(NativeEngine(plays(["two"])), plan())

    parts = [part for message in workshop.messages for part in message.parts]
    assert [getattr(part, "outcome", None) for part in parts if part.part_kind == "tool-return"] == [
        "success",
        "failed",
    ]
    assert [message.kind for message in workshop.messages] == ["request", "response"] * 4


def test_no_id_of_a_call_is_given_twice_in_one_history(workshop: Any, script: Any) -> None:
    for _ in range(2):
        workshop.run(ENGINE, script({"tool": "list", "result": "a"}, {"text": "x"}))
        go_on(workshop)

    assert [event.call_id for event in workshop.told(ToolStarted)] == ["call-1", "call-2"]


def test_of_a_call_that_was_cut_off_the_history_has_no_result(workshop: Any, script: Any) -> None:
    workshop.stop_at(ENGINE, script({"tool": "bash", "seconds": 300}), lambda event: isinstance(event, ToolStarted))

    assert [part.part_kind for message in workshop.messages for part in message.parts] == ["user-prompt", "tool-call"]


@pytest.mark.parametrize("content", [None, "not json", '{"kind": "request"}'])
def test_a_session_that_cannot_be_read_is_a_matter_of_setup(workshop: Any, plan: Any, content: str | None) -> None:
    workshop.more["history"] = workshop.step_dir.parent / "earlier.json"
    if content is not None:
        workshop.more["history"].write_text(content)

    assert workshop.fail(ENGINE, plan("scripted:echo")).reason == "setup"
    assert workshop.events == []


def test_a_pretended_tool_takes_its_time_and_passes_its_limit(workshop: Any, script: Any) -> None:
    step = script({"tool": "bash", "seconds": 300}, {"text": "x"}, tool_timeout_s=0.05)

    failure = workshop.fail(ENGINE, step)

    assert failure.reason == "timeout" and "The tool bash passed its limit of 0.05 s" in failure.message
    (ended,) = workshop.told(ToolEnded)
    assert not ended.ok and ended.seconds >= 0.05 and failure.usage is not None and failure.usage.tool_calls == 1


def test_a_pretended_tool_can_be_cancelled_and_the_script_goes_on(workshop: Any, script: Any) -> None:
    workshop.limits = FixedLimits()
    workshop.on = lambda event: (
        asyncio.get_running_loop().call_later(0.01, lambda: workshop.open_tools["call-1"]())
        if isinstance(event, ToolStarted)
        else None
    )

    assert workshop.run(ENGINE, script({"tool": "bash", "seconds": 300}, {"text": "went on"})).text == "went on"
    assert workshop.told(ToolEnded)[0].preview == "The person cancelled this call."


def test_a_pretended_write_is_told_as_a_changed_file_and_a_refused_one_is_not(workshop: Any, script: Any) -> None:
    workshop.run(
        ENGINE,
        script(
            {"tool": "write", "args": {"path": "a.txt"}},
            {"tool": "edit", "args": {"path": "b.txt"}, "refused": "no"},
            {"tool": "read", "args": {"path": "c.txt"}},
            {"text": "done"},
        ),
    )

    assert workshop.told(FileChanged) == [FileChanged("a.txt")]


def test_a_pretended_rate_limit_is_a_wait_that_no_deadline_counts(workshop: Any, script: Any) -> None:
    waits: list[str] = []

    @contextmanager
    def waiting() -> Any:
        waits.append("begun")
        yield
        waits.append("over")

    workshop.more["waiting"] = waiting

    workshop.run(ENGINE, script({"rate_limited": 0.001}, {"text": "after all"}))

    assert waits == ["begun", "over"]
    assert workshop.told(Noticed) == [Noticed("rate-limited", "The provider asks to wait 0.001 s.")]
    assert workshop.told(UsageChanged)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"text": "a", "choices": ["x"]}, "belongs to ask steps"),
        ({"ask": "?", "seconds": 1}, "belongs to tool steps"),
        ({"await_steer": False}, "must be true"),
        ({"ask": "?", "await_steer": True}, "exactly one"),
    ],
)
def test_a_script_with_misplaced_fields_is_refused(workshop: Any, script: Any, item: Any, words: str) -> None:
    failure = workshop.fail(ENGINE, script(item))

    assert failure.reason == "setup" and words in failure.message
