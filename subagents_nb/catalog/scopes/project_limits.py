"""Limits that a project's settings can lower and not raise: what the person said of one holds against the project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from subagents_nb.domain.plans.budgets import Amount, WrittenToolBudget, WrittenUsageBudget
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.words import duration

_NO_LIMIT = "checkpoint"  # says when, not how long
_OPTIONS = {one.in_settings: one.kind for one in OPTIONS if one.setting and one.setting != _NO_LIMIT}
_TIMES = tuple(field for field, kind in _OPTIONS.items() if kind == "duration")
_COUNTS = tuple(field for field, kind in _OPTIONS.items() if kind == "count")
_OF_RUNS = ("max_parallel", "group_concurrency", "max_items")


def lower_of(field: str, own: Any, project: Any) -> Any:
    """Return what holds of a setting that the person and a project say: of a limit the narrower, in each of its parts.

    `own` is None where the person says nothing: a default of ours is nobody's limit.
    """
    narrower = _LIMITS.get(field)
    return project if own is None or narrower is None else narrower(own, project)


def beyond(field: str, own: Any, project: Any) -> str:
    """Return how far a project goes beyond what holds of a limit without it, in words; empty if it doesn't."""
    if own is None or field not in _LIMITS:
        return ""
    mine, theirs = _amounts(field, own), _amounts(field, project)
    if not any(name in mine and amount > mine[name] for name, amount in theirs.items()):
        return ""
    shown = duration if field in _TIMES else _said
    return f"{field.removesuffix('_s')} {shown(project)} is above {shown(own)}"


def _amounts(field: str, given: Any) -> dict[str, float]:
    """Return each part of a limit that is a number of its own."""
    if field == "tool_budget":
        calls = read(WrittenToolBudget, given)[0]
        return {} if calls is None else {"hard": calls.hard}
    if field == "usage_budget":
        usage = read(WrittenUsageBudget, given)[0]
        names = ("tokens", "cost_usd") if usage is not None else ()
        return {name: amount.hard for name in names if (amount := getattr(usage, name)) is not None}
    return {"": given}


def _tool_calls(own: Any, project: Any) -> Any:
    mine, theirs = read(WrittenToolBudget, own)[0], read(WrittenToolBudget, project)[0]
    if mine is None or theirs is None:
        return own if theirs is None else project  # a fault of one of them is told where it is read
    hard = min(mine.hard, theirs.hard)
    soft = min((one for one in (mine.soft, theirs.soft) if one is not None), default=None)
    block = sorted({*mine.block, *theirs.block})
    return {"hard": hard, "block": block} | ({} if soft is None else {"soft": min(soft, hard)})


def _usage(own: Any, project: Any) -> Any:
    mine, theirs = read(WrittenUsageBudget, own)[0], read(WrittenUsageBudget, project)[0]
    if mine is None or theirs is None:
        return own if theirs is None else project
    found: dict[str, Any] = {}
    for name in ("tokens", "cost_usd"):
        amounts = [amount for one in (mine, theirs) if (amount := getattr(one, name)) is not None]
        if amounts:
            found[name] = _lower(amounts)
    stops = [one.stop_running for one in (mine, theirs) if "stop_running" in one.model_fields_set]
    return found | ({"stop_running": any(stops)} if stops else {})


def _lower(amounts: list[Amount]) -> dict[str, float]:
    hard = min(one.hard for one in amounts)
    soft = min((one.soft for one in amounts if one.soft is not None), default=None)
    return {"hard": hard} | ({} if soft is None else {"soft": min(soft, hard)})


def _said(given: Any) -> str:
    if not isinstance(given, Mapping):
        return f"{given:,}" if isinstance(given, int) else str(given)
    return ", ".join(f"{name} {_said(value)}" for name, value in given.items())


_LIMITS: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys((*_TIMES, *_COUNTS, *_OF_RUNS), min),
    "tool_budget": _tool_calls,
    "usage_budget": _usage,
}
