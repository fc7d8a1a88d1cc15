"""Read budgets as people write them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from subagents_nb.domain.agents.agent import KNOWN_TOOLS, AgentDefinition
from subagents_nb.domain.plans.budgets import Amount, ToolBudget, UsageBudget
from subagents_nb.domain.values.faults import nearest, said_of
from subagents_nb.domain.values.given import parse_amount, parse_whole
from subagents_nb.domain.values.reasons import Reasons

_SPELLINGS = {"costUsd": "cost_usd", "cost-usd": "cost_usd", "stop-running": "stop_running"}


def plan_tool_budget(asked: Any, agent: AgentDefinition, reasons: Reasons) -> ToolBudget | None:
    """Return the tool budget of a step: what was asked for, else the agent's. A number alone is the hard limit."""
    given = asked if asked is not None else agent.tool_budget
    if given is None or given is False:
        return None
    if isinstance(given, ToolBudget):
        return given
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            given = parse_whole(given)
    fields: Any = {"hard": given} if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(fields, Mapping):
        reasons.append(f"tool_budget is a number of calls, or a mapping with hard, soft and block, not {given!r}")
        return None
    fields = {key: value for key, value in fields.items() if value is not None}
    if isinstance(fields.get("block"), str):
        fields["block"] = [fields["block"]]
    block = fields.get("block")
    named = block if isinstance(block, list | tuple | set | frozenset) else ()  # what else it may be is a fault below
    unknown = [name for name in named if name != "*" and name not in KNOWN_TOOLS]
    if unknown:
        reasons.append(
            f"tool_budget.block names no tool with {', '.join(map(str, unknown))}; the tools are "
            f"{', '.join(KNOWN_TOOLS)}, or * for all"
        )
    try:
        return ToolBudget.model_validate(fields)
    except ValidationError as error:
        reasons.extend(_faults("tool_budget", error, ToolBudget))
        return None


def plan_usage_budget(asked: Any, reasons: Reasons, *, single: bool) -> UsageBudget | None:
    """Return the usage budget of a run. A number alone is a hard amount of tokens, `$2` or `2 USD` one of money.

    In a run of one step nothing comes later, so that its budget holds at all, it keeps that step from going on.
    """
    if asked is None or asked is False:
        return None
    if isinstance(asked, UsageBudget):
        return asked
    fields = _short_form(asked)
    if not isinstance(fields, Mapping):
        reasons.append(
            "usage_budget is a number of tokens, an amount like $0.50, or a mapping with tokens and cost_usd, "
            f"not {asked!r}"
        )
        return None
    given = {_SPELLINGS.get(str(key), str(key)): value for key, value in fields.items() if value is not None}
    fields = {"stop_running": single, **given}
    for key in ("tokens", "cost_usd"):
        if isinstance(fields.get(key), bool):
            reasons.append(f"usage_budget.{key} is an amount, not {fields[key]}")
            return None
        if key in fields and not isinstance(fields[key], Amount):
            amount = _amount(fields[key], key)
            fields[key] = amount if isinstance(amount, Mapping) else {"hard": amount}
    try:
        return UsageBudget.model_validate(fields)
    except ValidationError as error:
        reasons.extend(_faults("usage_budget", error, UsageBudget))
        return None


def _short_form(asked: Any) -> Any:
    if isinstance(asked, bool):
        return asked
    if isinstance(asked, int | float):
        return {"tokens": asked}
    if isinstance(asked, str):
        try:
            amount, unit = parse_amount(asked)
        except ValueError:
            return asked
        return {"cost_usd": amount} if unit == "usd" else {"tokens": amount}
    return asked


def _amount(asked: Any, key: str) -> Any:
    """Return an amount inside of a mapping as a number, if it is written with a unit; what is none stays as it is."""
    if isinstance(asked, Mapping):
        return {name: _amount(value, key) for name, value in asked.items()}
    if isinstance(asked, str):
        with contextlib.suppress(ValueError):
            amount, unit = parse_amount(asked)
            return amount if unit in ("", "usd" if key == "cost_usd" else "tokens") else asked
    return asked


def _faults(name: str, error: ValidationError, kind: type[BaseModel]) -> list[str]:
    found = []
    for fault in error.errors(include_url=False):
        where = ".".join((name, *(str(part) for part in fault["loc"])))
        what = said_of(fault)
        if fault["type"] == "extra_forbidden":
            near = nearest(str(fault["loc"][-1]), kind.model_fields if len(fault["loc"]) == 1 else Amount.model_fields)
            what = f"unknown key{f'; did you mean {near}?' if near else ''}"
        found.append(f"{where}: {what[:1].lower()}{what[1:]}")
    return found
