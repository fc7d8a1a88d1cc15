"""What a run may do, as one value that can only narrow: what each who has a say allows at most, all of them together.

Managed file, user, project, launch, agent, parent: each source is a ceiling, and a policy is a set of ceilings. To meet
another policy is to be under its ceilings too, so nothing that either denies is ever allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from subagents_nb.domain.policy.policy_rules import parse_rule
from subagents_nb.domain.policy.sandbox_plan import Sandbox
from subagents_nb.domain.policy.tool_names import covers, is_server
from subagents_nb.domain.values.base import Value, stable_json
from subagents_nb.domain.values.thinking import THINKING_LEVELS, Thinking


class Ceiling(Value):
    """What one source allows at most. What it leaves open, it does not limit."""

    origin: str = ""  # the file or launch that says so, as people know it; it decides nothing
    tools: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None  # that may be delegated to
    models: tuple[str, ...] | None = None  # with * for any letters
    max_thinking: Thinking | None = None
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    max_depth: int | None = Field(default=None, ge=0)  # levels of runs below this one
    max_children: int | None = Field(default=None, ge=1)
    max_tokens: float | None = Field(default=None, gt=0)  # of a run, input and output together
    max_usd: float | None = Field(default=None, gt=0)
    ask_timeout_s: float | None = Field(default=None, gt=0)  # how long a permission is waited for
    sandbox: Sandbox | None = None  # in which its processes work
    network: Literal[False] | None = None  # not even where that lets processes out

    @field_validator("deny", "ask", "allow")
    @classmethod
    def _guards(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        for rule in rules:
            parse_rule(rule)
        return rules

    @property
    def limits(self) -> bool:
        """Whether it limits anything."""
        return self.model_copy(update={"origin": "", "ask_timeout_s": None}) != Ceiling()

    def forbids_tool(self, tool: str) -> str:
        """Return how it takes a tool away as a whole, in words that follow its name; empty if it does not."""
        # Of a server as a whole, who allows one of its tools takes nothing away; each call is judged by its own name.
        part = tool if is_server(tool) else ""
        if self.tools is not None and not any(
            covers(name, tool) or (part and covers(part, name)) for name in self.tools
        ):
            return f"allows {', '.join(self.tools) or 'no tool'}"
        rule = next((one for one in map(parse_rule, self.deny) if one.whole and covers(one.tool, tool)), None)
        return f"denies {rule.text}" if rule is not None else ""

    def forbids_agent(self, name: str) -> bool:
        """Say whether it keeps an agent from being delegated to."""
        return self.agents is not None and name not in self.agents

    def forbids_model(self, *names: str) -> bool:
        """Say whether no pattern of it matches a model, by any of its names."""
        if self.models is None:
            return False
        return not any(_model_glob(one).fullmatch(name) for one in self.models for name in names)

    def forbids_thinking(self, level: str | None) -> bool:
        """Say whether a level is above its own."""
        if self.max_thinking is None or level not in THINKING_LEVELS:
            return False
        return THINKING_LEVELS.index(level) > THINKING_LEVELS.index(self.max_thinking)


class Policy(Value):
    """A set of ceilings, each once and in one order: equal policies are equal values."""

    ceilings: tuple[Ceiling, ...] = ()

    @field_validator("ceilings")
    @classmethod
    def _in_order(cls, given: tuple[Ceiling, ...]) -> tuple[Ceiling, ...]:
        by_content = {stable_json(one.model_dump(mode="json")): one for one in given}
        return tuple(by_content[key] for key in sorted(by_content))

    @classmethod
    def of(cls, *ceilings: Ceiling | None) -> Self:
        """Return the policy of these; who limits nothing is none of them."""
        return cls(ceilings=tuple(one for one in ceilings if one is not None and one.limits))

    def __bool__(self) -> bool:
        return bool(self.ceilings)

    def meet(self, other: Policy | None) -> Self:
        """Return what both allow."""
        return self if other is None else type(self)(ceilings=self.ceilings + other.ceilings)

    def contract(self) -> list[dict[str, Any]]:
        """Return what the launch contract binds: what is allowed, whoever says so."""
        left_out = {"origin", "ask_timeout_s"}
        bound = (one.model_dump(mode="json", exclude=left_out, exclude_defaults=True) for one in self.ceilings)
        own = {stable_json(found): found for found in bound if found}
        return [own[key] for key in sorted(own)]

    def who_forbids_tool(self, tool: str) -> tuple[Ceiling, str] | None:
        """Return who takes a tool away as a whole, and how; None if nobody does."""
        return next(((one, how) for one in self.ceilings if (how := one.forbids_tool(tool))), None)

    def who_forbids_agent(self, name: str) -> Ceiling | None:
        """Return who keeps an agent from being delegated to; None if nobody does."""
        return next((one for one in self.ceilings if one.forbids_agent(name)), None)

    def lets_all(self, tool: str) -> bool:
        """Say whether no rule says anything of a tool but that it is allowed whole."""
        rules = [(one, kind) for one in self.ceilings for kind in ("deny", "ask", "allow")]
        about = [
            (kind, rule) for one, kind in rules for rule in map(parse_rule, getattr(one, kind)) if rule.is_about(tool)
        ]
        return all(kind == "allow" and rule.whole for kind, rule in about)

    @property
    def hides_files(self) -> bool:
        """Whether a rule denies files, or has them asked about."""
        return any(parse_rule(rule).path for one in self.ceilings for rule in (*one.deny, *one.ask))

    @property
    def judges_calls(self) -> bool:
        """Whether anything in it depends on the call, or takes a tool away."""
        return any(one.tools is not None or one.deny or one.ask or one.allow for one in self.ceilings)

    @property
    def max_depth(self) -> int | None:
        """Return how many levels of runs may be below, if somebody limits that."""
        return min((one.max_depth for one in self.ceilings if one.max_depth is not None), default=None)

    @property
    def wants_sandbox(self) -> Ceiling | None:
        """Return who has processes work in a sandbox; None if nobody does."""
        return next((one for one in self.ceilings if one.sandbox is not None), None)

    @property
    def denies_network(self) -> Ceiling | None:
        """Return who denies the network to processes; None if nobody does."""
        return next((one for one in self.ceilings if one.network is False), None)

    @property
    def ask_timeout_s(self) -> float | None:
        """Return how long a permission is waited for, if somebody limits that."""
        return min((one.ask_timeout_s for one in self.ceilings if one.ask_timeout_s is not None), default=None)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Return the rules by which files are not to be read, with any tool."""
        return _on_files((rule for one in self.ceilings for rule in one.deny), ("read",))

    def hides_from(self, *tools: str) -> tuple[str, ...]:
        """Return the rules by which files are not even found: what is denied or asked about is in no search."""
        return _on_files((rule for one in self.ceilings for rule in (*one.deny, *one.ask)), tools)


def _on_files(rules: Iterable[str], tools: tuple[str, ...]) -> tuple[str, ...]:
    found = (rule for rule in rules if (read := parse_rule(rule)).path and any(map(read.is_about, tools)))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def _model_glob(pattern: str) -> re.Pattern[str]:
    first, *rest = map(re.escape, pattern.split("*"))
    # What stands between two stars is taken where it comes first, and not looked for again: a plan is made meanwhile.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{between}.*{rest[-1]}" if rest else first, re.IGNORECASE | re.DOTALL)


def tools_and_rules(items: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tools that a list names, and the rules in it: who has `bash(git log:*)` has bash, and that of it.

    Raises:
        BadRule: an item can't be read.
    """
    rules = [parse_rule(item) for item in items]
    tools = tuple(dict.fromkeys(rule.tool for rule in rules))
    return tools, tuple(rule.text for rule in rules) if any(not rule.whole for rule in rules) else ()
