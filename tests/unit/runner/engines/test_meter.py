"""The tool budget: counted, reminded of once, then refused, and the same on both engines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from subagents_nb.domain.plans.budgets import ToolBudget
from subagents_nb.domain.runs.events import Noticed, ToolEnded, ToolStarted
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine

LIST = ("list", {})
READ = ("read", {"path": "a.txt"})
WRITE = ("write", {"path": "b.txt", "content": "b"})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def meter(**budget: Any) -> tuple[ToolMeter, list[Any]]:
    told: list[Any] = []
    return ToolMeter(ToolBudget.model_validate(budget) if budget else None, told.append), told


def notices(workshop: Any) -> list[str]:
    return [event.text for event in workshop.told(Noticed) if event.code == "tool-budget"]


def refusals(workshop: Any) -> list[str]:
    """Return what became of each call, in the order of their ends."""
    return ["refused" if end.refused else "made" if end.ok else "failed" for end in workshop.told(ToolEnded)]


# --- counting ---------------------------------------------------------------------------------------------------


def test_without_a_budget_everything_is_allowed() -> None:
    free, told = meter()
    assert [free.refusal(str(n), "read") for n in range(50)] == [None] * 50
    assert free.reminders() == () and told == []


def test_a_call_counts_once_while_it_is_open_and_anew_when_its_id_comes_again() -> None:
    one, _ = meter(hard=2)
    assert [one.announce("a"), one.announce("a"), one.announce("b")] == [1, 1, 2]
    one.forget("a")
    assert one.announce("a") == 3
    one.forget("never announced")


def test_only_blocked_tools_are_refused_and_every_call_counts() -> None:
    one, told = meter(hard=1)
    assert one.refusal("a", "write") is None, "the first"
    assert one.refusal("b", "write") is None, "not a tool that is blocked"
    assert one.refusal("c", "read") == (
        "this step may make 1 tool call, and none of read, list, find, grep may be called any more; answer now"
    )
    assert one.refusal("d", "grep") is not None
    assert [event.code for event in told] == ["tool-budget"], "said once"


def test_a_star_blocks_every_tool() -> None:
    one, _ = meter(hard=1, block=("*",))
    assert one.refusal("a", "bash") is None
    assert "no tool may be called any more" in (one.refusal("b", "bash") or "")


def test_the_reminder_comes_at_the_soft_limit_and_once() -> None:
    one, told = meter(hard=4, soft=2)
    one.announce("a")
    assert one.reminders() == ()
    one.announce("b")
    one.announce("c")
    (text,) = one.reminders()
    assert text.startswith("You have made 2 of the 4 tool calls that you may make.")
    assert one.reminders() == () and len(told) == 1


# --- with a model -----------------------------------------------------------------------------------------------


def test_calls_past_the_hard_limit_are_refused_and_the_answer_is_not(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "a.txt").write_text("a")
    engine = NativeEngine(plays([LIST, READ], [READ], ["one line"]))

    outcome = workshop.run(engine, plan(tools=("list", "read"), tool_budget={"hard": 2}))

    assert outcome.text == "one line" and outcome.usage.tool_calls == 3
    assert refusals(workshop) == ["made", "made", "refused"]
    returns = [part for m in workshop.messages for part in m.parts if isinstance(part, ToolReturnPart)]
    assert "Not allowed: this step may make 2 tool calls" in str(returns[-1].content)
    assert "answer now" in str(returns[-1].content)
    assert notices(workshop) == [
        "The step made 2 tool calls, its budget; none of read, list, find, grep may be called any more."
    ]


def test_calls_of_one_turn_are_counted_in_their_order(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "a.txt").write_text("a")
    engine = NativeEngine(plays([LIST, READ, LIST], ["done"]))

    workshop.run(engine, plan(tools=("list", "read"), tool_budget={"hard": 2}))

    ended = {end.call_id: end.refused is not None for end in workshop.told(ToolEnded)}
    assert [ended[start.call_id] for start in workshop.told(ToolStarted)] == [False, False, True]


def test_a_tool_that_is_not_blocked_may_write_the_result(workshop: Any, plan: Any, plays: Any) -> None:
    engine = NativeEngine(plays([LIST], [LIST, WRITE], ["done"]))
    workshop.run(engine, plan(tools=("list", "write"), tool_budget={"hard": 1}))
    assert sorted(refusals(workshop)) == ["made", "made", "refused"]
    assert (workshop.cwd / "b.txt").read_text() == "b"


def test_tools_that_are_not_there_count_too(workshop: Any, plan: Any, plays: Any) -> None:
    engine = NativeEngine(plays([("teleport", {})], [LIST], ["done"]))
    workshop.run(engine, plan(tools=("list",), tool_budget={"hard": 1}))
    assert refusals(workshop) == ["refused", "refused"]
    assert notices(workshop)


def test_a_structured_answer_is_no_tool_call(workshop: Any, plan: Any, plays: Any) -> None:
    engine = NativeEngine(plays([LIST], [("answer", {"n": 3})]))
    step = plan(tools=("list",), tool_budget={"hard": 1, "block": ("*",)}, output_schema=SCHEMA)
    assert workshop.run(engine, step).value == {"n": 3}
    assert refusals(workshop) == ["made"]


def test_the_reminder_goes_with_the_next_request_once(workshop: Any, plan: Any, plays: Any) -> None:
    seen: list[list[str]] = []

    def look(messages: Any) -> Any:
        seen.append([str(p.content) for m in messages for p in m.parts if isinstance(p, UserPromptPart)])
        return [LIST] if len(seen) < 4 else ["done"]

    workshop.run(NativeEngine(plays(look)), plan(tools=("list",), tool_budget={"hard": 9, "soft": 2}))

    assert [len(said) for said in seen] == [1, 1, 2, 2]
    assert seen[2][1].startswith("You have made 2 of the 9 tool calls that you may make.")
    assert notices(workshop) == ["The step made 2 of the 9 tool calls it may make."]


def test_a_reminder_does_not_make_a_turn_go_on_that_is_over(workshop: Any, plan: Any, plays: Any) -> None:
    engine = NativeEngine(plays([LIST, ("answer", {"n": 3})], [("answer", {"n": 4})]))
    step = plan(tools=("list",), tool_budget={"hard": 2, "soft": 1}, output_schema=SCHEMA)
    outcome = workshop.run(engine, step)
    assert outcome.value == {"n": 3} and outcome.usage.requests == 1


# --- with the twin ----------------------------------------------------------------------------------------------


@pytest.fixture
def script(workshop: Any, plan: Any) -> Any:
    """Write a script into the workspace and return a step that plays it."""

    def write(*items: Any, **more: Any) -> Any:
        (workshop.cwd / "demo.json").write_text(json.dumps(items))
        return plan("scripted:demo.json", **more)

    return write


def test_the_twin_keeps_the_same_budget(workshop: Any, script: Any) -> None:
    look, write = {"tool": "read", "args": {"path": "a.txt"}}, {"tool": "write", "args": {"path": "b.txt"}}
    step = script(look, look, look, write, {"text": "done"}, tool_budget={"hard": 2, "soft": 2})

    outcome = workshop.run(ScriptedEngine(), step)

    assert outcome.text == "done" and outcome.usage.tool_calls == 4
    assert refusals(workshop) == ["made", "made", "refused", "made"]
    assert outcome.usage.requests == 2, "the reminder went with one of its own"
    assert [text.split(";")[0] for text in notices(workshop)] == [
        "The step made 2 of the 2 tool calls it may make.",
        "The step made 2 tool calls, its budget",
    ]
    said = [part.get("content", "") for message in workshop_session(workshop) for part in message["parts"]]
    assert any(text.startswith("You have made 2 of the 2 tool calls") for text in said)


def workshop_session(workshop: Any) -> Any:
    return json.loads((workshop.step_dir / "session.json").read_text())


def test_a_question_of_the_twin_that_is_blocked_is_not_put(workshop: Any, script: Any) -> None:
    async def person(*_: Any, **__: Any) -> str:
        raise AssertionError("nobody is asked")

    workshop.more["ask"] = person
    step = script({"tool": "list"}, {"ask": "Go on?"}, {"text": "done"}, tool_budget={"hard": 1, "block": ["*"]})
    assert workshop.run(ScriptedEngine(), step).text == "done"
    assert refusals(workshop) == ["made", "refused"]
