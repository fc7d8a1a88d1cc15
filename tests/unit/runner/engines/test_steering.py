"""Messages that come while the model works, and limits that change meanwhile."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from subagents_nb.domain.runs.events import ModelAsked, ToolEnded, ToolStarted
from subagents_nb.runner.engines.engine import FixedLimits
from subagents_nb.runner.engines.native.native import NativeEngine

LIST = [("list", {})]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def said(messages: Any) -> list[str]:
    return [str(part.content) for m in messages for part in m.parts if isinstance(part, UserPromptPart)]


def test_a_steer_reaches_the_model_before_its_next_request_and_once(workshop: Any, plan: Any, plays: Any) -> None:
    seen: list[Any] = []
    workshop.on = lambda event: (
        workshop.inbox.put("only csv", "and be quick") if isinstance(event, ToolStarted) else None
    )

    def look(messages: Any) -> list[Any]:
        seen.append(said(messages))
        return LIST if len(seen) == 2 else ["done"]

    def first(messages: Any) -> list[Any]:
        seen.append(said(messages))
        return LIST

    workshop.run(NativeEngine(plays(first, look, look)), plan(tools=("list",)))

    assert seen[0] == ["count the rows"]
    assert seen[1] == ["count the rows", "only csv", "and be quick"]
    assert seen[2] == [*seen[1], "only csv", "and be quick"], "the second tool call brought two more"
    assert said(workshop.messages) == seen[2]


def test_a_steer_that_came_before_the_first_request_goes_with_it(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.inbox.put("in French")
    seen: list[Any] = []

    workshop.run(NativeEngine(plays(lambda messages: seen.append(said(messages)) or ["trois"])), plan())

    assert seen == [["count the rows", "in French"]]


def test_a_steer_comes_after_the_results_of_the_tools(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.on = lambda event: workshop.inbox.put("only csv") if isinstance(event, ToolEnded) else None
    kinds: list[str] = []

    def look(messages: Any) -> list[Any]:
        last = [part for m in messages for part in m.parts]
        kinds.extend(type(part).__name__ for part in last[-2:])
        return ["done"]

    workshop.run(NativeEngine(plays(LIST, look)), plan(tools=("list",)))

    assert kinds == [ToolReturnPart.__name__, UserPromptPart.__name__]


def test_follow_ups_and_late_steers_go_on_when_the_turn_is_over(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.inbox.put("and the columns?", mode="follow-up")

    def late(_messages: Any) -> list[Any]:
        workshop.inbox.put("late")
        return ["three rows"]

    outcome = workshop.run(NativeEngine(plays(late, ["two columns"])), plan())

    assert outcome.text == "two columns" and outcome.usage.requests == 2
    assert workshop.inbox.taken == ["late", "and the columns?"]
    assert said(workshop.messages) == ["count the rows", "late", "and the columns?"]
    assert workshop.text == "three rows\n\ntwo columns"


def test_a_structured_turn_goes_on_and_the_last_value_counts(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.inbox.put("look again", mode="follow-up")

    outcome = workshop.run(
        NativeEngine(plays([("answer", {"n": 3})], [("answer", {"n": 4})])), plan(output_schema=SCHEMA)
    )

    assert outcome.value == {"n": 4} and outcome.usage.requests == 2
    assert said(workshop.messages) == ["count the rows", "look again"]


def test_without_a_request_left_nothing_is_taken_and_the_answer_stands(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.inbox.put("more", mode="follow-up")

    outcome = workshop.run(NativeEngine(plays(["three"])), plan(max_requests=1))

    assert outcome.text == "three" and workshop.inbox.taken == []


def test_a_limit_lowered_meanwhile_ends_the_step_before_its_next_request(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.limits = FixedLimits(max_requests=50)
    workshop.inbox.put("unheard", mode="follow-up")

    def lower(event: Any) -> None:
        if event == ModelAsked(2):
            workshop.limits.max_requests = 2

    workshop.on = lower

    failure = workshop.fail(NativeEngine(plays(LIST)), plan(tools=("list",)))

    assert failure.reason == "budget" and "2 model requests" in failure.message
    assert failure.usage is not None and failure.usage.requests == 2
    assert isinstance(workshop.messages[-1].parts[0], ToolReturnPart), "what the tools found is kept"


def test_a_limit_raised_meanwhile_lets_the_step_go_on(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.limits = FixedLimits(max_requests=2)

    def more(event: Any) -> None:
        if event == ModelAsked(2):
            workshop.limits.max_requests = 4

    workshop.on = more

    outcome = workshop.run(NativeEngine(plays(LIST, LIST, LIST, ["done"])), plan(tools=("list",)))

    assert outcome.text == "done" and outcome.usage.requests == 4
