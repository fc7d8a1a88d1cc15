"""What a step or a run may spend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from subagents_nb.domain.plans.budgets import DEFAULT_BLOCKED, Amount, ToolBudget, UsageBudget
from subagents_nb.domain.runs.control import Retune
from subagents_nb.domain.values.usage import Usage


def used(tokens: int = 0, cost: float | None = None) -> Usage:
    return Usage(input_tokens=tokens // 2, output_tokens=tokens - tokens // 2, cost_usd=cost)


def test_looking_around_is_blocked_unless_the_budget_names_tools() -> None:
    usual = ToolBudget(hard=1)
    assert [tool for tool in ("read", "grep", "find", "list", "write", "bash") if usual.blocks(tool)] == list(
        DEFAULT_BLOCKED
    )
    assert ToolBudget(hard=1, block=("bash",)).blocks("bash") and not ToolBudget(hard=1, block=("bash",)).blocks("read")
    assert ToolBudget(hard=1, block=("*",)).blocks("whatever")
    assert not ToolBudget(hard=1, block=()).blocks("read")


def test_a_soft_limit_is_not_larger_than_the_hard_one() -> None:
    assert ToolBudget(hard=3, soft=3).soft == 3
    with pytest.raises(ValidationError, match=r"soft \(4\) is larger than hard \(3\)"):
        ToolBudget(hard=3, soft=4)
    with pytest.raises(ValidationError, match=r"soft \(4\) is larger than hard \(3\)"):
        Amount(hard=3, soft=4)


@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf")])
def test_an_amount_is_positive_and_finite(amount: float) -> None:
    with pytest.raises(ValidationError):
        Amount(hard=amount)
    with pytest.raises(ValidationError):
        Amount(hard=10, soft=amount)


def test_a_usage_budget_says_something() -> None:
    with pytest.raises(ValidationError, match="names tokens, cost_usd or both"):
        UsageBudget()


@pytest.mark.parametrize(
    ("tokens", "state"),
    [(0, "within"), (79, "within"), (80, "soft-reached"), (99, "soft-reached"), (100, "hard-reached")],
)
def test_tokens_in_and_out_count_together(tokens: int, state: str) -> None:
    assert UsageBudget(tokens=Amount(hard=100, soft=80)).judge(used(tokens)) == state


def test_the_worst_of_both_amounts_counts() -> None:
    budget = UsageBudget(tokens=Amount(hard=100, soft=10), cost_usd=Amount(hard=1, soft=0.5))
    assert budget.judge(used(5, 0.1)) == "within"
    assert budget.judge(used(10, 0.1)) == "soft-reached"
    assert budget.judge(used(5, 0.5)) == "soft-reached"
    assert budget.judge(used(10, 1.0)) == "hard-reached"
    assert budget.judge(used(100, 0.0)) == "hard-reached"


def test_an_unknown_cost_passes_no_limit_and_tokens_still_do() -> None:
    budget = UsageBudget(tokens=Amount(hard=100), cost_usd=Amount(hard=1))
    assert budget.judge(used(99, None)) == "within"
    assert budget.judge(used(100, None)) == "hard-reached"
    assert UsageBudget(cost_usd=Amount(hard=1)).judge(used(10**9, None)) == "within"


def test_what_was_used_is_said_in_words() -> None:
    both = UsageBudget(tokens=Amount(hard=1_000_000), cost_usd=Amount(hard=0.5))
    assert both.words(used(1234, 0.25)) == "1,234 of 1,000,000 tokens and $0.2500 of $0.5"
    assert UsageBudget(cost_usd=Amount(hard=2)).words(used(5)) == "an unknown cost of $2"


@given(st.integers(1, 1000), st.integers(0, 2000), st.integers(0, 2000))
def test_more_usage_never_judges_better(hard: int, one: int, more: int) -> None:
    budget = UsageBudget(tokens=Amount(hard=hard, soft=max(1, hard // 2)))
    order = ["within", "soft-reached", "hard-reached"]
    assert order.index(budget.judge(used(one))) <= order.index(budget.judge(used(one + more)))


@pytest.mark.parametrize(
    ("change", "used", "holds_nothing"),
    [
        ({"cost_usd": 1}, {"requests": 1}, True),
        ({"cost_usd": 1}, {}, False),
        ({"cost_usd": 1}, {"requests": 1, "cost_usd": 0.1}, False),
        ({"cost_usd": 1, "tokens": 5}, {"requests": 1}, False),
        ({"tokens": 5}, {"requests": 1}, False),
    ],
)
def test_money_alone_holds_nothing_where_the_usage_has_no_price(change: Any, used: Any, holds_nothing: bool) -> None:
    assert Retune(**change).holds_nothing(Usage(**used)) is holds_nothing


def test_what_was_reached_is_said_and_how_much_of_the_whole_that_is() -> None:
    budget = UsageBudget.model_validate({"tokens": {"hard": 100, "soft": 50}, "cost_usd": {"hard": 1}})
    assert budget.reached(Usage(input_tokens=49)) == (None, "")
    state, said = budget.reached(Usage(input_tokens=60, cost_usd=0.9))
    assert state == "soft-reached" and said.startswith("The soft limit of its usage budget was reached: 60 of 100")
    assert budget.share(Usage(input_tokens=60, cost_usd=0.9)) == 0.9
    assert budget.share(Usage(input_tokens=60)) == 0.6
