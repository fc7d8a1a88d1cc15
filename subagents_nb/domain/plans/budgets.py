"""What a step or a run may spend. Decided here, kept by the runner."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from subagents_nb.domain.agents.agent import KNOWN_TOOLS
from subagents_nb.domain.policy.tool_names import covers, mcp_tool
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import Real, Whole, parse_amount, parse_whole
from subagents_nb.domain.values.reading import Unfit, Written, must_be, one_or_many
from subagents_nb.domain.values.usage import Usage, total

# What a tool budget blocks unless it names the tools itself: looking around is what runs away (origin's default).
DEFAULT_BLOCKED = ("read", "grep", "find", "list")
BudgetState = Literal["within", "soft-reached", "hard-reached"]


class ToolBudget(Value):
    """How many tool calls a step may make. Past `soft` it is reminded once; past `hard` blocked tools are refused.

    The final answer is never blocked.
    """

    hard: Whole = Field(ge=1)
    soft: Whole | None = Field(default=None, ge=1)
    block: tuple[str, ...] = DEFAULT_BLOCKED  # "*": all tools

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.soft is not None and self.soft > self.hard:
            raise ValueError(f"soft ({self.soft}) is larger than hard ({self.hard})")
        return self

    def blocks(self, tool: str) -> bool:
        """Say whether a tool is refused once the hard limit is passed."""
        return any(covers(one, tool) for one in self.block)


def _tool(name: str) -> str:
    if (server_tool := mcp_tool(name)) is not None:
        return server_tool
    if name != "*" and name not in KNOWN_TOOLS:
        raise Unfit(f"names no tool with {shown(name)}; the tools are {', '.join(KNOWN_TOOLS)}, or * for all")
    return name


class Amount(Value):
    """A soft and a hard amount of one thing."""

    hard: Real = Field(gt=0, allow_inf_nan=False)
    soft: Real | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.soft is not None and self.soft > self.hard:
            raise ValueError(f"soft ({self.soft:g}) is larger than hard ({self.hard:g})")
        return self

    def less(self, used: float) -> Self:
        """Return what is left of it."""
        soft = self.soft if self.soft is not None and self.soft > used else None
        return type(self)(hard=self.hard - used, soft=None if soft is None else soft - used)


def _amount(unit: str) -> Callable[[Any], Any]:
    """Return what reads an amount of one thing: a number, one with its unit, or a mapping of such."""

    def plain(given: Any) -> Any:
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                amount, named = parse_amount(given)
                return amount if named in ("", unit) else given
        return given

    def read(given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: plain(value) for name, value in given.items()}
        return given if isinstance(given, Amount) else {"hard": plain(given)}

    return read


class UsageBudget(Value):
    """What a whole run may use, by what providers reported: nothing is reserved in advance.

    Soft amounts are shown. A hard one keeps every later step from starting and ends the run as failed; with
    `stop_running` the steps that are at work make no further model request either.
    """

    tokens: Amount | None = None  # input and output together
    cost_usd: Amount | None = None
    stop_running: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.tokens is None and self.cost_usd is None:
            raise ValueError("a usage budget names tokens, cost_usd or both")
        return self

    def judge(self, usage: Usage) -> BudgetState:
        """Return how far a usage has come. A cost that is not known passes no limit; tokens still do."""
        worst: BudgetState = "within"
        for amount, used in ((self.tokens, usage.input_tokens + usage.output_tokens), (self.cost_usd, usage.cost_usd)):
            if amount is None or used is None:
                continue
            if used >= amount.hard:
                return "hard-reached"
            if amount.soft is not None and used >= amount.soft:
                worst = "soft-reached"
        return worst

    def less(self, usage: Usage) -> Self:
        """Return what a usage leaves of it, for work that goes on; of a hard amount something must be left.

        A soft amount that was passed has been shown, and is gone. An unknown cost leaves all of the money.
        """
        used = {"tokens": usage.input_tokens + usage.output_tokens, "cost_usd": usage.cost_usd or 0.0}
        left = {name: amount.less(used[name]) for name in used if (amount := getattr(self, name)) is not None}
        return self.model_copy(update=left)

    def reached(self, usage: Usage) -> tuple[BudgetState | None, str]:
        """Return which limit a usage has come to, and the words for it; None and nothing while it has come to none."""
        state = self.judge(usage)
        if state == "within":
            return None, ""
        which = "soft" if state == "soft-reached" else "hard"
        return state, f"The {which} limit of its usage budget was reached: {self.words(usage)}."

    def share(self, usage: Usage) -> float | None:
        """Return how much of a hard amount was used, of the one that is nearest to its end; None if nobody knows."""
        pairs = ((self.tokens, usage.input_tokens + usage.output_tokens), (self.cost_usd, usage.cost_usd))
        shares = [used / amount.hard for amount, used in pairs if amount is not None and used is not None]
        return max(shares, default=None)

    def words(self, usage: Usage) -> str:
        """Say what was used of what, for people."""
        parts = []
        if self.tokens is not None:
            parts.append(f"{usage.input_tokens + usage.output_tokens:,} of {self.tokens.hard:,.0f} tokens")
        if self.cost_usd is not None:
            used = "an unknown cost" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
            parts.append(f"{used} of ${self.cost_usd.hard:g}")
        return " and ".join(parts)


class SharedBudget(Value):
    """One budget that the runs of a sweep hold together: none of them asks a model again once they have passed it.

    Each writes what it used into a folder of them all. Those that were over when a run was launched are in `before`, so
    that it has to read of later ones alone: ids sort by the time of launch.
    """

    pool: str  # names the folder
    budget: UsageBudget
    before: Usage = Usage()
    since: str = ""  # the id of the first run that is not in it

    def used(self, later: Iterable[Usage]) -> Usage:
        """Return what is held against it. A cost that is not known counts as none, and tokens still do."""
        priced = (one if one.cost_usd is not None else one.model_copy(update={"cost_usd": 0.0}) for one in later)
        return total((self.before, *priced))

    def over(self, used: Usage) -> str | None:
        """Return what was used of it, once nothing is left, and what to do; else None."""
        if self.budget.judge(used) != "hard-reached":
            return None
        return f"{self.budget.words(used)}, by its whole sweep. Give that more with --sweep-budget and launch it again."


class WrittenToolBudget(Written, ToolBudget):
    """A tool budget as people write it: a number of calls, or a mapping; one tool to block, or a list."""

    block: Annotated[tuple[Annotated[str, AfterValidator(_tool)], ...], one_or_many()] = DEFAULT_BLOCKED

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        hard = given
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                hard = parse_whole(given)
        if isinstance(hard, int) and not isinstance(hard, bool):
            return {"hard": hard}
        if not isinstance(given, Mapping):
            raise must_be("a number of calls, or a mapping with hard, soft and block", given)
        return given


class WrittenUsageBudget(Written, UsageBudget):
    """A usage budget as people write it: a number of tokens, an amount with its unit, or a mapping."""

    tokens: Annotated[Amount | None, BeforeValidator(_amount("tokens"))] = None
    cost_usd: Annotated[Amount | None, BeforeValidator(_amount("usd"))] = None

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return given
        if isinstance(given, int | float) and not isinstance(given, bool):
            return {"tokens": given}
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                amount, unit = parse_amount(given)
                return {"cost_usd" if unit == "usd" else "tokens": amount}
        raise must_be("a number of tokens, an amount like $0.50, or a mapping with tokens and cost_usd", given)


def retuned_budget(planned: UsageBudget | None, *, tokens: float | None, cost_usd: float | None) -> UsageBudget | None:
    """Return a budget with the hard amounts that were given since it was planned; None while there is none at all.

    One that was not planned ends the steps that are at work too, else it would hold for nothing.
    """
    amounts = {"tokens": tokens, "cost_usd": cost_usd}
    limits = {name: Amount(hard=hard) for name, hard in amounts.items() if hard is not None}
    if planned is None:
        return UsageBudget(**limits, stop_running=True) if limits else None
    return planned.model_copy(update=limits)
