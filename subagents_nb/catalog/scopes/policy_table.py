"""What files say of policy: the table `[policy]` of settings, and the file of whoever administers the machine."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from subagents_nb.catalog import fields
from subagents_nb.catalog.trust import MAX_SETTINGS_BYTES
from subagents_nb.domain.agents.agent import Thinking
from subagents_nb.domain.plans.budgets import UsageBudget, WrittenUsageBudget
from subagents_nb.domain.policy.policy import Ceiling, tools_and_rules
from subagents_nb.domain.policy.policy_rules import BadRule, rule_faults
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import Count, Seconds, Text, Whole
from subagents_nb.domain.values.reading import mapping, read
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.store.files.opener import read_plain

MANAGED = Path("/etc/subagents-nb/policy.toml")
_RULES = tuple[Text, ...]


class _Table(Value):
    """The keys of the table, as they are written."""

    tools: tuple[Text, ...] | None = None
    agents: tuple[Text, ...] | None = None
    models: tuple[Text, ...] | None = None
    max_thinking: Thinking | None = None
    deny: _RULES = ()
    ask: _RULES = ()
    allow: _RULES = ()
    max_depth: Whole | None = None
    max_children: Count | None = None
    spend: Annotated[Any, fields.well_formed(WrittenUsageBudget)] = None
    ask_timeout: Seconds | None = None
    sandbox: Literal["workspace"] | None = None
    network: Literal[False] | None = None


PolicyTable = Annotated[Any, mapping('a table: [policy] with tools = ["read"], deny = ["bash(git push:*)"]')]


def ceiling_of(
    table: Mapping[str, Any], origin: str, root: str = "policy"
) -> tuple[Ceiling | None, tuple[Reason, ...]]:
    """Return what a table allows at most, or None and all that is wrong with it."""
    found, faults = read(_Table, table)
    reasons = [Reason(fault.about(f"{origin}: `{fault.at(root).partition(' ')[0]}`"), place=origin) for fault in faults]
    if found is None:
        return None, tuple(reasons)
    tools = found.tools
    rules: tuple[str, ...] = ()
    try:
        if tools is not None:
            tools, rules = tools_and_rules(tools)
    except BadRule:
        reasons += (
            Reason(text, place=origin) for text in rule_faults(origin, deny=(), ask=(), allow=found.tools or ())
        )
    allow = (*found.allow, *rules)
    told = rule_faults(origin, deny=found.deny, ask=found.ask, allow=allow)
    reasons += (Reason(text, place=origin) for text in told)
    if reasons:
        return None, tuple(reasons)
    same = {name: getattr(found, name) for name in Ceiling.model_fields.keys() & _Table.model_fields.keys()}
    read_otherwise = {"tools": tools, "allow": allow, "ask_timeout_s": found.ask_timeout, **_spend(found.spend)}
    return Ceiling(**{**same, "origin": origin, **read_otherwise}), ()


def narrowed_to(sandbox: str | None, network: bool | None) -> dict[str, Any]:
    """Return what these two words limit, as a ceiling has it: `none` and `true` limit nothing."""
    limits: dict[str, Any] = {"sandbox": "workspace"} if sandbox == "workspace" else {}
    return limits | {"network": False} if network is False else limits


def _spend(given: Any) -> dict[str, float]:
    """Return hard amounts as a ceiling has them."""
    written, _ = read(WrittenUsageBudget, given) if given is not None else (None, ())
    budget = UsageBudget(**dict(written)) if written is not None else None
    amounts = {"max_tokens": getattr(budget, "tokens", None), "max_usd": getattr(budget, "cost_usd", None)}
    return {name: amount.hard for name, amount in amounts.items() if amount is not None}


def managed_ceiling(path: Path) -> tuple[Ceiling | None, tuple[Reason, ...]]:
    """Return what the administrator allows at most; a file that is there and can't be used keeps every launch back.

    It is root's alone, else it would be anybody's word.
    """
    where = str(path)

    def refused(text: str) -> tuple[None, tuple[Reason, ...]]:
        return None, (Reason(text, lead=where, place=where),)

    try:
        for place in (path, path.parent):
            about = place.stat()
            if place.is_relative_to(MANAGED.parent) and (
                about.st_uid != 0 or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            ):
                return refused(f"{place} is not root's alone, so nothing is started by its word or without it")
        data = read_plain(path, MAX_SETTINGS_BYTES)
        if len(data) > MAX_SETTINGS_BYTES:
            return refused(f"the file is larger than {MAX_SETTINGS_BYTES // 1024} KiB")
        return ceiling_of(tomllib.loads(data.decode("utf-8-sig")), where, "")
    except (FileNotFoundError, NotADirectoryError):
        return None, ()
    except OSError as error:
        return refused(f"the file can't be read: {error.strerror or error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return refused(f"not TOML: {error}")


def widened(own: Ceiling, above: Sequence[Ceiling]) -> Iterator[str]:
    """Yield what a project's table would allow beyond those above it: it takes nothing back, so it is a mistake."""
    more: list[tuple[str, list[Any]]] = [
        ("tools", [name for name in own.tools or () if any(one.forbids_tool(name) for one in above)]),
        ("agents", [name for name in own.agents or () if any(one.forbids_agent(name) for one in above)]),
        ("models", [name for name in own.models or () if any(one.forbids_model(name) for one in above)]),
        ("max_thinking", [own.max_thinking for one in above if one.forbids_thinking(own.max_thinking)][:1]),
        *((key, _above(own, above, key)) for key in ("max_depth", "max_children")),
    ]
    for key, names in more:
        if names:
            yield f"project settings can't widen: policy.{key} adds {', '.join(map(str, names))}"


def _above(own: Ceiling, above: Sequence[Ceiling], key: str) -> list[Any]:
    given = getattr(own, key)
    most = min((limit for one in above if (limit := getattr(one, key)) is not None), default=None)
    return [given] if given is not None and most is not None and given > most else []
