"""The tool `delegate` of a model: side by side, its answer the child's, its failures told and its refusals counted."""

from __future__ import annotations

import asyncio
from typing import Any

from subagents_nb.domain.agents.agent import DELEGATE, REPLY
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.engine import ChildFailed, NotDelegated
from subagents_nb.runner.engines.native.native import NativeEngine


class Delegation:
    """Delegation of a step, of which each call does what is said here."""

    def __init__(self, delegate: Any, reply: Any = None) -> None:
        self._delegate, self._reply = delegate, reply

    async def __call__(self, agent: str, task: str) -> str:
        return str(await self._delegate(agent, task))

    async def reply(self, child: str, text: str, *, to_person: bool = False) -> str:
        return str(await self._reply(child, text, to_person))

    async def close(self) -> None:
        pass


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

    workshop.more = {"delegate": Delegation(delegate)}
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

    workshop.more = {"delegate": Delegation(delegate)}
    assert workshop.run(NativeEngine(plays(*[[call] for call in CALLS], ["done"])), may(plan)).text == "done"
    ends = workshop.told(ToolEnded)
    assert [(end.ok, end.refused) for end in ends] == [
        (False, None),
        (False, "the usage budget of the whole tree is used up"),
    ]


def test_a_policy_that_denies_delegating_reaches_no_child(workshop: Any, plan: Any, plays: Any) -> None:
    async def delegate(_agent: str, _task: str) -> str:
        raise AssertionError("it was started")

    workshop.more = {"delegate": Delegation(delegate)}
    policy = Policy.of(Ceiling(origin="me", deny=("delegate",)))
    assert workshop.run(NativeEngine(plays(CALLS[:1], ["done"])), may(plan, policy=policy)).text == "done"
    (end,) = workshop.told(ToolEnded)
    assert not end.ok and end.refused is not None and "me denies delegate" in end.refused


async def asks(_agent: str, _task: str) -> str:
    return "scout-2 asks you"


async def answered(child: str, text: str, to_person: bool) -> str:
    if child != "scout-2":
        raise NotDelegated(f"no {child} waits for an answer of yours; these do: scout-2")
    return f"heard {text or 'the person'} {to_person}"


ANSWERS = [
    [(REPLY, {"child": "scout", "text": "x"})],
    [(REPLY, {"child": "scout-2", "text": "blue"})],
    [(REPLY, {"child": "scout-2", "to_person": True})],
]


def test_a_model_answers_what_a_child_asks_it(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.more = {"delegate": Delegation(asks, answered)}
    step = may(plan).model_copy(update={"tools": ("read", DELEGATE, REPLY)})
    assert workshop.run(NativeEngine(plays(CALLS[:1], *ANSWERS, ["done"])), step).text == "done"
    ends = workshop.told(ToolEnded)
    assert [end.ok for end in ends] == [True, False, True, True]
    assert ends[1].refused == "no scout waits for an answer of yours; these do: scout-2"
    assert [end.preview for end in ends[2:]] == ["heard blue False", "heard the person True"]


def test_a_rule_on_whom_to_delegate_to_judges_replies_too(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.more = {"delegate": Delegation(asks, answered)}
    for rule, fine in (("delegate(scout)", False), ("delegate(other)", True)):
        policy = Policy.of(Ceiling(origin="me", deny=(rule,), tools=("read", "delegate")))
        step = may(plan, policy=policy).model_copy(update={"tools": ("read", DELEGATE, REPLY)})
        workshop.run(NativeEngine(plays(ANSWERS[1], ["done"])), step)
        assert workshop.told(ToolEnded)[-1].ok is fine
