"""The limits in force: as planned, until somebody retunes the live run."""

from __future__ import annotations

from typing import Any

import pytest
from support import make_plan, make_step

from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.runs.control import Retune
from subagents_nb.domain.values.usage import Usage
from subagents_nb.runner.steps.limits_in_force import LiveLimits, StepLimits


class Meter:
    """What was used so far, set by a test."""

    def __init__(self) -> None:
        self.usage = Usage()

    def __call__(self) -> Usage:
        return self.usage

    def spend(self, tokens: int, cost: float | None = None) -> None:
        self.usage = Usage(input_tokens=tokens, cost_usd=cost)


@pytest.fixture
def meter() -> Meter:
    return Meter()


def limits(meter: Meter, budget: dict[str, Any] | None = None, **plan: Any) -> LiveLimits:
    given = None if budget is None else UsageBudget.model_validate(budget)
    return LiveLimits(make_plan(usage_budget=given, **plan), meter)


def test_limits_are_as_planned_until_they_are_retuned(meter: Meter) -> None:
    live = limits(meter, timeout_s=60, max_parallel=7)
    step = StepLimits(live, make_step(max_requests=9, tool_timeout_s=5))
    assert (live.time_left(50), live.max_parallel, live.concurrency(3)) == ((10, 60), 7, 3)
    assert (step.max_requests, step.tool_timeout_s) == (9, 5)

    live.retune(Retune(timeout_s=90, concurrency=2))
    live.retune(Retune(max_requests=20, tool_timeout_s=8))

    assert (live.time_left(50), live.max_parallel, live.concurrency(3)) == ((40, 90), 2, 2)
    assert (step.max_requests, step.tool_timeout_s) == (20, 8)
    assert live.retuned.changes == {"timeout_s": 90, "concurrency": 2, "max_requests": 20, "tool_timeout_s": 8}


def test_a_later_change_wins_and_leaves_the_others(meter: Meter) -> None:
    live = limits(meter, timeout_s=60)
    live.retune(Retune(timeout_s=90, max_requests=4))
    live.retune(Retune(timeout_s=30))
    assert live.retuned == Retune(timeout_s=30, max_requests=4)


def test_without_a_budget_nothing_is_spent(meter: Meter) -> None:
    live = limits(meter)
    meter.spend(10**9, 1e6)
    assert (live.budget, live.spent()) == (None, None)
    assert live.may_start() and StepLimits(live, make_step()).over_budget() is None


def test_a_used_up_budget_lets_no_step_start_and_those_at_work_go_on(meter: Meter) -> None:
    live = limits(meter, {"tokens": {"hard": 100, "soft": 50}})
    step = StepLimits(live, make_step())
    meter.spend(50)
    assert live.spent() == "soft-reached" and live.may_start()
    meter.spend(100)
    assert live.spent() == "hard-reached" and not live.may_start()
    assert step.over_budget() is None


def test_a_budget_that_stops_lets_no_further_request_be_made_and_says_what_was_used(meter: Meter) -> None:
    live = limits(meter, {"tokens": {"hard": 100}, "stop_running": True})
    step = StepLimits(live, make_step())
    meter.spend(99)
    assert step.over_budget() is None
    meter.spend(120)
    assert step.over_budget() == "120 of 100 tokens. Give it more with --usage-budget."


def test_retuning_raises_a_budget_and_keeps_what_it_does(meter: Meter) -> None:
    live = limits(meter, {"tokens": {"hard": 100, "soft": 50}, "cost_usd": {"hard": 1}})
    meter.spend(150, 0.5)
    assert not live.may_start()

    live.retune(Retune(tokens=1000))

    assert live.may_start() and live.spent() == "within"
    budget = live.budget
    assert budget is not None and (budget.tokens, budget.cost_usd) == (Amount(hard=1000), Amount(hard=1))
    assert not budget.stop_running


def test_retuning_may_also_lower_a_budget_below_what_was_used(meter: Meter) -> None:
    live = limits(meter, {"cost_usd": {"hard": 5}, "stop_running": True})
    meter.spend(10, 2.0)
    assert live.over_budget() is None
    live.retune(Retune(cost_usd=1.5))
    assert live.over_budget() == "$2.0000 of $1.5. Give it more with --usage-budget."


def test_a_budget_given_to_a_live_run_that_had_none_holds_what_is_at_work(meter: Meter) -> None:
    live = limits(meter)
    meter.spend(150)
    live.retune(Retune(tokens=100))
    assert not live.may_start()
    assert StepLimits(live, make_step()).over_budget() == "150 of 100 tokens. Give it more with --usage-budget."


def test_a_budget_held_with_other_runs_that_they_have_passed_lets_nothing_begin(
    meter: Meter,
) -> None:
    live = limits(meter)
    told: list[str | None] = [None, "300 of 250 tokens, by its whole sweep"]
    live.hold_together(lambda: told[0])
    step = StepLimits(live, make_step())
    assert live.may_start() and step.over_budget() is None

    told.reverse()

    assert not live.may_start() and step.over_budget() == told[0]
