"""What a run that goes on inherits of the limits before: what was in force at the end, less what was used."""

from __future__ import annotations

from typing import Any

import pytest
from support import WHEN, make_plan, make_result, make_step, run_id

from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, Origin, StepItem
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning.resuming.revival import draft_revival

USED = Usage(requests=3, input_tokens=1000, output_tokens=200, cost_usd=0.25)
BUDGET = UsageBudget(tokens=Amount(hard=5000, soft=1000), stop_running=True)


def retuned(**changes: float) -> Retuned:
    return Retuned(at=WHEN, by="python", changes=changes)


def revived(
    plan: LaunchPlan,
    *retunes: Retuned,
    elapsed: float = 10.0,
    usage: Usage = USED,
    spent: Spent | None = None,
    **asked: Any,
) -> Draft:
    result = make_result(state=RunState.PAUSED, reason="interrupted", elapsed_s=elapsed, retunes=retunes)
    step = result.steps[0].model_copy(update={"usage": usage})
    result = result.model_copy(update={"usage": usage, "steps": (step,)})
    snapshot = Snapshot(run_id=plan.run_id, plan=plan, result=result)
    facts = LaunchEnvironment(cwd=plan.cwd, environ_names=frozenset(), scripts=frozenset({"echo"}))
    revival = Revival(text="go on", **asked)
    spent = spent or Spent(usage=usage)
    return draft_revival(revival, plan, plan.steps[0], snapshot, environment=facts, has_session=True, spent=spent)


def limits(draft: Draft) -> tuple[Any, ...]:
    step = draft.steps[0]
    return draft.timeout_s, step.max_requests, step.tool_timeout_s, draft.usage_budget


def test_what_is_left_of_every_limit_is_inherited() -> None:
    plan = make_plan(steps=(make_step(max_requests=50, tool_timeout_s=9),), timeout_s=3600, usage_budget=BUDGET)
    left = UsageBudget(tokens=Amount(hard=3800), stop_running=True)  # the soft amount was shown before
    assert limits(revived(plan)) == (3590, 47, 9, left)


def test_what_was_said_of_the_launch_before_is_not_said_of_the_one_that_goes_on() -> None:
    said = ("Launched anew: it failed.", "When it was launched, no place was free: at most 1 runs are live.", "Kept.")
    assert revived(make_plan(notes=said)).notes == ("Kept.",)


def test_limits_that_were_changed_meanwhile_count_and_of_several_changes_the_last() -> None:
    plan = make_plan(timeout_s=3600, usage_budget=BUDGET)
    changes = [
        retuned(timeout_s=7200, max_requests=99, tokens=2000),
        retuned(max_requests=7, tool_timeout_s=5, cost_usd=1),
    ]
    left = UsageBudget(tokens=Amount(hard=800), cost_usd=Amount(hard=0.75), stop_running=True)
    assert limits(revived(plan, *changes)) == (7190, 4, 5, left)


def test_a_budget_that_a_live_run_was_given_is_inherited_too() -> None:
    left = UsageBudget(tokens=Amount(hard=800), stop_running=True)
    assert revived(make_plan(), retuned(tokens=2000)).usage_budget == left


def test_a_run_whose_deadline_was_put_off_can_be_gone_on_from_after_the_first_one() -> None:
    plan = make_plan(timeout_s=2.5)
    with pytest.raises(LaunchRefused, match=r"the 2\.5 s of scout-1 are used up"):
        revived(plan)
    assert revived(plan, retuned(timeout_s=3600)).timeout_s == 3590
    with pytest.raises(LaunchRefused, match=r"the 5 s of scout-1 are used up"):
        revived(make_plan(timeout_s=60), retuned(timeout_s=5))


def test_a_budget_that_is_used_up_is_refused_unless_more_is_given() -> None:
    plan = make_plan(usage_budget=UsageBudget(tokens=Amount(hard=1200)))
    with pytest.raises(LaunchRefused, match="usage budget of scout-1 is used up: 1,200 of 1,200 tokens; give it more"):
        revived(plan)
    assert revived(plan, usage_budget="2k").usage_budget == UsageBudget(tokens=Amount(hard=2000), stop_running=True)
    assert revived(plan, usage_budget=False).usage_budget is None


def test_a_cost_that_nobody_knows_takes_nothing_off() -> None:
    plan = make_plan(usage_budget=UsageBudget(cost_usd=Amount(hard=1)))
    assert revived(plan, usage=USED.model_copy(update={"cost_usd": None})).usage_budget == plan.usage_budget


def test_of_a_chain_the_budget_holds_for_the_one_step_that_goes_on() -> None:
    budget = BUDGET.model_copy(update={"stop_running": False})
    plan = make_plan(mode="chain", items=(StepItem(step=0),), usage_budget=budget)
    left = revived(plan).usage_budget
    assert left is not None
    assert left.stop_running


def test_of_a_tree_all_that_it_used_and_started_counts_and_is_not_given_back() -> None:
    tree = Spent(usage=Usage(input_tokens=4000, output_tokens=200), runs=3)
    plan = make_plan(usage_budget=BUDGET, max_children=4)
    root = revived(plan, spent=tree)
    assert root.usage_budget == UsageBudget(tokens=Amount(hard=800), stop_running=True)
    assert root.resumes is not None
    assert (root.max_children, root.resumes.admitted, root.resumes.tree) == (4, 3, plan.run_id)
    child = make_plan(usage_budget=BUDGET, max_children=4, origin=Origin(parent=run_id(7), root=run_id(8)))
    by_itself = revived(child, spent=tree)
    assert by_itself.usage_budget == root.usage_budget
    assert by_itself.resumes is not None and by_itself.resumes.tree == run_id(8)
    with pytest.raises(LaunchRefused, match="is used up: 5,100 of 5,000 tokens"):
        revived(plan, spent=Spent(usage=Usage(input_tokens=5100)))
    alone = revived(child, spent=Spent())  # its root was deleted
    assert alone.usage_budget == UsageBudget(tokens=Amount(hard=3800), stop_running=True)
