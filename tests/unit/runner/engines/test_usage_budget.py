"""A usage budget that is used up while a step is at work: no further request, and the same on both engines."""

from __future__ import annotations

import json
from typing import Any

from subagents_nb.domain.runs.events import ModelAsked, ToolEnded
from subagents_nb.runner.engines.engine import FixedLimits
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine

SPENT = "120 of 100 tokens. Give it more with --usage-budget."
TOLD = f"The usage budget is used up: {SPENT}"


def spend_at(workshop: Any, kind: type[Any]) -> None:
    """Let the budget be used up as soon as such an event is reported."""
    limits = workshop.limits = FixedLimits()

    def look(event: Any) -> None:
        if isinstance(event, kind):
            limits.spent = SPENT

    workshop.on = look


def test_a_model_is_not_asked_again(workshop: Any, plan: Any, plays: Any) -> None:
    spend_at(workshop, ToolEnded)
    failure = workshop.fail(NativeEngine(plays([("list", {})], ["done"])), plan(tools=("list",)))
    assert (failure.reason, failure.message) == ("budget", TOLD)
    assert len(workshop.told(ModelAsked)) == 1 and failure.usage is not None and failure.usage.requests == 1


def test_an_answer_that_is_there_is_not_lost(workshop: Any, plan: Any, plays: Any) -> None:
    spend_at(workshop, ModelAsked)
    workshop.inbox.put("and more?", mode="follow-up")
    assert workshop.run(NativeEngine(plays(["done"])), plan()).text == "done"
    assert workshop.inbox.taken == [], "what can't be delivered is left in the inbox"


def test_the_twin_hears_nothing_more(workshop: Any, plan: Any) -> None:
    spend_at(workshop, ToolEnded)
    script = [{"tool": "list"}, {"await_steer": True}, {"text": "done"}]
    (workshop.cwd / "demo.json").write_text(json.dumps(script))
    failure = workshop.fail(ScriptedEngine(), plan("scripted:demo.json"))
    assert (failure.reason, failure.message) == ("budget", TOLD)


def test_the_answer_of_the_twin_is_not_lost(workshop: Any, plan: Any) -> None:
    spend_at(workshop, ModelAsked)
    workshop.inbox.put("and more?", mode="follow-up")
    assert workshop.run(ScriptedEngine(), plan("scripted:echo")).text == "count the rows"
    assert workshop.inbox.taken == []
