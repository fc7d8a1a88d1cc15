"""Read budgets as people write them."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.budgets import ToolBudget, UsageBudget, WrittenToolBudget, WrittenUsageBudget
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.reasons import Reasons


def plan_tool_budget(asked: Any, agent: AgentDefinition, reasons: Reasons) -> ToolBudget | None:
    """Return the tool budget of a step: what was asked for, else the agent's. A number alone is the hard limit."""
    value = asked if asked is not None else agent.tool_budget
    if value is None or value is False or isinstance(value, ToolBudget):
        return value or None
    written, faults = read(WrittenToolBudget, value)
    reasons.extend(fault.at("tool_budget") for fault in faults)
    return None if written is None else ToolBudget(**dict(written))


def plan_usage_budget(asked: Any, reasons: Reasons, *, single: bool) -> UsageBudget | None:
    """Return the usage budget of a run. A number alone is a hard amount of tokens, `$2` or `2 USD` one of money.

    In a run of one step nothing comes later, so that its budget holds at all, it keeps that step from going on.
    """
    if asked is None or asked is False or isinstance(asked, UsageBudget):
        return asked or None
    written, faults = read(WrittenUsageBudget, asked)
    reasons.extend(fault.at("usage_budget") for fault in faults)
    if written is None:
        return None
    fields = dict(written)
    return UsageBudget(**fields | ({} if "stop_running" in written.model_fields_set else {"stop_running": single}))
