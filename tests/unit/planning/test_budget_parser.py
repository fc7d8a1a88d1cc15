"""Budgets as people write them: what each form means, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.budgets import DEFAULT_BLOCKED, Amount, ToolBudget, UsageBudget
from subagents_nb.planning.budget_parser import plan_tool_budget, plan_usage_budget


def tools(asked: Any = None, of_agent: Any = None) -> Any:
    reasons: list[str] = []
    budget = plan_tool_budget(asked, AgentDefinition(name="scout", description="d", tool_budget=of_agent), reasons)
    assert reasons == []
    return budget


def refused_tools(asked: Any) -> list[str]:
    reasons: list[str] = []
    plan_tool_budget(asked, AgentDefinition(name="scout", description="d"), reasons)
    assert reasons
    return reasons


def usage(asked: Any, *, single: bool = True) -> UsageBudget:
    reasons: list[str] = []
    budget = plan_usage_budget(asked, reasons, single=single)
    assert reasons == [] and budget is not None
    return budget


def refused_usage(asked: Any) -> str:
    reasons: list[str] = []
    assert plan_usage_budget(asked, reasons, single=True) is None
    (reason,) = reasons
    return reason


# --- tool budgets -----------------------------------------------------------------------------------------------


def test_a_number_is_the_hard_limit() -> None:
    assert tools(5) == ToolBudget(hard=5) == tools({"hard": 5})
    assert tools(5).block == DEFAULT_BLOCKED


def test_what_is_asked_for_wins_over_the_agents_and_false_switches_it_off() -> None:
    assert tools() is None
    assert tools(None, 7) == ToolBudget(hard=7)
    assert tools(None, {"hard": 7, "soft": 5}) == ToolBudget(hard=7, soft=5)
    assert tools(3, 7) == ToolBudget(hard=3)
    assert tools(False, 7) is None
    assert tools(ToolBudget(hard=2), 7) == ToolBudget(hard=2)


def test_tools_to_block_are_a_list_or_one() -> None:
    assert tools({"hard": 5, "block": "*"}).block == ("*",)
    assert tools({"hard": 5, "block": ["bash", "read"]}).block == ("bash", "read")
    assert tools({"hard": 5, "block": None, "soft": None}) == ToolBudget(hard=5)


@pytest.mark.parametrize("asked", [True, "5.5", "²", [5], 5.5])
def test_what_is_no_tool_budget_is_refused(asked: Any) -> None:
    assert refused_tools(asked) == [
        f"tool_budget must be a number of calls, or a mapping with hard, soft and block, not {asked!r}"
    ]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (0, "tool_budget must be 1 or more, not 0"),
        (-3, "tool_budget must be 1 or more, not -3"),
        ({"hard": 0}, "tool_budget.hard must be 1 or more, not 0"),
        ({"soft": 3}, "tool_budget.hard is missing"),
        ({"hard": 3, "soft": 0}, "tool_budget.soft must be 1 or more, not 0"),
        ({"hard": 3, "soft": 4}, "tool_budget: soft (4) is larger than hard (3)"),
        ({"hard": 3, "sfot": 4}, "tool_budget.sfot is unknown; did you mean soft?"),
        ({"hard": 3, "block": 5}, "tool_budget.block must be text, not 5"),
        (
            {"hard": 3, "block": ["mail", "read"]},
            "tool_budget.block[0] names no tool with 'mail'; the tools are read, list, find, ",
        ),
    ],
)
def test_a_faulty_tool_budget_is_refused_with_the_key_at_fault(asked: Any, told: str) -> None:
    (reason,) = refused_tools(asked)
    assert reason.startswith(told)


def test_all_faults_of_a_tool_budget_are_said_at_once() -> None:
    assert len(refused_tools({"hard": 0, "later": 1})) == 2


# --- usage budgets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "tokens", "cost"),
    [
        (5000, 5000, None),
        (1.5e6, 1_500_000, None),
        ("5000", 5000, None),
        ("100,000", 100_000, None),
        ("1_000", 1000, None),
        ("1.5k", 1500, None),
        ("2M", 2_000_000, None),
        ("$0.50", None, 0.5),
        (" 2 USD ", None, 2),
        ("2usd", None, 2),
        ("5$", None, 5),
        ("$5 USD", None, 5),
        ("2 dollars", None, 2),
        ("5k tokens", 5000, None),
        ({"tokens": "5k"}, 5000, None),
        ({"cost_usd": "$2"}, None, 2),
        ("$1k", None, 1000),
        ({"tokens": 10}, 10, None),
        ({"tokens": "10"}, 10, None),
        ({"costUsd": 1}, None, 1),
        ({"cost-usd": 1, "tokens": {"hard": 9}}, 9, 1),
        ({"cost_usd": Amount(hard=3), "tokens": None}, None, 3),
    ],
)
def test_the_short_forms(asked: Any, tokens: float | None, cost: float | None) -> None:
    budget = usage(asked)
    assert (budget.tokens and budget.tokens.hard, budget.cost_usd and budget.cost_usd.hard) == (tokens, cost)


def test_soft_amounts_are_kept() -> None:
    assert usage({"tokens": {"hard": 10, "soft": 5}}).tokens == Amount(hard=10, soft=5)


def test_a_budget_of_one_step_holds_that_step_and_of_a_chain_the_later_ones() -> None:
    assert usage(5, single=True).stop_running and not usage(5, single=False).stop_running
    assert not usage({"tokens": 5, "stop_running": False}, single=True).stop_running
    assert usage({"tokens": 5, "stop-running": True}, single=False).stop_running


def test_a_ready_budget_is_taken_as_it_is_and_nothing_means_none() -> None:
    ready = UsageBudget(tokens=Amount(hard=1))
    assert usage(ready) is ready
    reasons: list[str] = []
    assert plan_usage_budget(None, reasons, single=True) is None
    assert plan_usage_budget(False, reasons, single=True) is None
    assert reasons == []


@pytest.mark.parametrize("asked", [True, "", "$", "usd", "k", "$5 tokens", "nan", "²", "€5", "USD 5", [5]])
def test_what_is_no_usage_budget_is_refused(asked: Any) -> None:
    assert refused_usage(asked) == (
        "usage_budget must be a number of tokens, an amount like $0.50, or a mapping with tokens and cost_usd, "
        f"not {asked!r}"
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (0, "usage_budget must be above 0, not 0"),
        ("$-1", "usage_budget must be above 0, not -1.0"),
        (float("inf"), "usage_budget must be a finite number, not inf"),
        (10**400, "usage_budget must be a number, not 100000000000000000000000000000000000000000000"),
        ({"tokens": "$5"}, "usage_budget.tokens must be a number, not '$5'"),
        ({"tokens": True}, "usage_budget.tokens must be a number, not True"),
        ({"tokens": {"soft": 5}}, "usage_budget.tokens.hard is missing"),
        ({"tokens": {"hard": 5, "soft": 9}}, "usage_budget.tokens: soft (9) is larger than hard (5)"),
        ({"cost": 5, "tokens": 1}, "usage_budget.cost is unknown; did you mean cost_usd?"),
        ({}, "usage_budget: a usage budget names tokens, cost_usd or both"),
        ({"tokens": None}, "usage_budget: a usage budget names tokens, cost_usd or both"),
    ],
)
def test_a_faulty_usage_budget_is_refused_with_the_key_at_fault(asked: Any, told: str) -> None:
    assert refused_usage(asked).startswith(told)
