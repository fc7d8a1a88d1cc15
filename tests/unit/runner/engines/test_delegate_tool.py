"""The tool `delegate` of a model: side by side, its answer the child's, its failures told and its refusals counted."""

from __future__ import annotations

import asyncio
from typing import Any

from subagents_nb.domain.agents.agent import DELEGATE
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.engine import ChildFailed, NotDelegated
from subagents_nb.runner.engines.native.native import NativeEngine

CALLS = [(DELEGATE, {"agent": "scout", "task": task}) for task in ("a", "b")]


def may(plan: Any, **more: Any) -> Any:
    return plan(tools=("read", DELEGATE), **more).model_copy(update={"delegates": ("scout",), "depth": 1})


def test_calls_of_one_turn_work_side_by_side(workshop: Any, plan: Any, plays: Any) -> None:
    there: list[str] = []
    both = asyncio.Event()

    async def delegate(agent: str, task: str) -> str:
        there.append(f"{agent} {task}")
        if len(there) == 2:
            both.set()
        await both.wait()
        return f"did {task}"

    workshop.more = {"delegate": delegate}
    assert workshop.run(NativeEngine(plays(CALLS, ["done"])), may(plan)).text == "done"
    assert sorted(there) == ["scout a", "scout b"]
    assert [(end.ok, end.refused) for end in workshop.told(ToolEnded)] == [(True, None)] * 2


def test_a_child_that_fails_is_a_failed_call_and_one_that_may_not_be_is_refused(
    workshop: Any, plan: Any, plays: Any
) -> None:
    async def delegate(agent: str, task: str) -> str:
        if task == "a":
            raise ChildFailed("scout ended as failed: It broke.")
        raise NotDelegated("the usage budget of the whole tree is used up")

    workshop.more = {"delegate": delegate}
    assert workshop.run(NativeEngine(plays(*[[call] for call in CALLS], ["done"])), may(plan)).text == "done"
    ends = workshop.told(ToolEnded)
    assert [(end.ok, end.refused) for end in ends] == [
        (False, None),
        (False, "the usage budget of the whole tree is used up"),
    ]


def test_a_policy_that_denies_delegating_reaches_no_child(workshop: Any, plan: Any, plays: Any) -> None:
    async def delegate(_agent: str, _task: str) -> str:
        raise AssertionError("it was started")

    workshop.more = {"delegate": delegate}
    policy = Policy.of(Ceiling(origin="me", deny=("delegate",)))
    assert workshop.run(NativeEngine(plays(CALLS[:1], ["done"])), may(plan, policy=policy)).text == "done"
    (end,) = workshop.told(ToolEnded)
    assert not end.ok and end.refused is not None and "me denies delegate" in end.refused
