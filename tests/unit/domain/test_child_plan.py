"""The plan of a child follows from its parent's, and every refusal is a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from support import WHEN, make_plan, make_step, run_id

from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.plans.request import Origin
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.tree.asks import ChildAsk
from subagents_nb.domain.tree.child_plan import NoChild, child_draft, delegators, template_of


def ask(**more: Any) -> ChildAsk:
    fields = {"run_id": run_id(), "ask_id": "d1", "step": 0, "agent": "scout", "task": "look", "path": "scout"}
    return ChildAsk.model_validate({**fields, "cwd": "/w/part", "asked_at": WHEN, **more})


def lead(**more: Any) -> LaunchPlan:
    scout = make_step("{task}", timeout_s=90.0)
    own = make_step(agent="lead", delegates=("scout", "far"), depth=2, children=(scout,))
    return make_plan(name="lead-1", steps=(own,), max_live=3, tool_env=("LAB",), **more)


def refusal(plan: LaunchPlan, **asked: Any) -> str:
    with pytest.raises(NoChild) as refused:
        template_of(plan, ask(**asked), delegators(plan), root="lead-4f2a")
    return str(refused.value)


def test_a_child_is_its_template_with_its_task_under_the_bounds_of_its_parent() -> None:
    plan = lead()
    child = child_draft(plan, ask(left_s=30.0), template_of(plan, ask(), delegators(plan), root="lead-1"))
    step = child.steps[0]
    assert (step.agent, step.task, step.label, step.index) == ("scout", "look", "look", 0)
    assert (child.cwd, child.timeout_s, child.max_live, child.tool_env) == ("/w/part", 30.0, 3, ("LAB",))
    assert (child.origin.parent, child.origin.root, child.origin.path) == (plan.run_id, plan.run_id, "scout")
    assert child_draft(plan, ask(), plan.steps[0].children[0]).timeout_s == 90.0
    grown = child.to_plan(run_id=run_id(2), token="t", created_at=WHEN)
    below = child_draft(grown, ask(path="scout/scout"), plan.steps[0].children[0]).origin
    assert (below.parent, below.root, below.level) == (run_id(2), plan.run_id, 2)


def test_a_run_that_names_nobody_may_not_delegate() -> None:
    said = "this process belongs to run scout-1, which may not delegate; name agents in its file"
    assert refusal(make_plan()) == said


def test_an_agent_that_is_not_named_is_refused_with_those_that_are() -> None:
    assert refusal(lead(), agent="deploy") == (
        "'deploy' is not among the agents that lead may delegate to (scout, far)"
    )


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"deny": ("delegate(Scout)",)}, "rule 'delegate(Scout)' (me) denies it"),
        ({"deny": ("delegate",)}, "me denies delegate"),
        ({"ask": ("delegate",)}, "rule 'delegate' (me) says to ask, and the tool delegate alone can ask"),
        ({"allow": ("delegate(far)",)}, "no rule (me) allows it, and the tool delegate alone can ask"),
    ],
)
def test_a_process_of_a_run_begins_nobody_whom_its_tool_could_not(rules: dict[str, Any], why: str) -> None:
    own = lead().steps[0]
    plan = lead().model_copy(
        update={"steps": (own.model_copy(update={"policy": Policy.of(Ceiling(origin="me", **rules))}),)}
    )
    assert refusal(plan, step=None) == f"'scout' can't be begun by a process of this run: {why}"
    assert template_of(plan, ask(), delegators(plan), root="x").agent == "scout", "the tool has passed the gate"
    assert template_of(lead(), ask(step=None), delegators(lead()), root="x").agent == "scout"


def test_where_the_levels_end_it_says_how_many_there_are() -> None:
    deep = lead(origin=Origin(parent=run_id(2), root=run_id(3), path="lead/lead"))
    step = deep.steps[0].model_copy(update={"children": (), "depth": 0})
    assert refusal(deep.model_copy(update={"steps": (step,)})) == (
        "delegation ends here: this run is 2 levels below lead-4f2a, and its plan allows 2"
    )


def test_an_empty_task_and_one_without_end_are_refused() -> None:
    assert refusal(lead(), task=" ") == "the task is empty; write what is to be done"
    assert "256 KiB" in refusal(lead(), task="x" * 300_000)


def test_the_budget_of_the_tree_goes_with_the_plan() -> None:
    budget = UsageBudget.model_validate({"tokens": {"hard": 10}, "stop_running": True})
    plan = lead(usage_budget=budget)
    assert child_draft(plan, ask(), plan.steps[0].children[0], budget=budget).usage_budget == budget
