"""What models and tools used: tokens, requests, calls, money."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from subagents_nb.domain.values.base import Value


class Usage(Value):
    """What a step or run used so far. Tokens as the provider reported them; cost in US dollars, None when unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    cost_usd: float | None = None

    def plus(self, other: Usage) -> Usage:
        """Return the sum; a cost is known only if all parts that used tokens know theirs."""
        costs = [u.cost_usd for u in (self, other) if u.requests or u.cost_usd is not None]
        known = [c for c in costs if c is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            requests=self.requests + other.requests,
            tool_calls=self.tool_calls + other.tool_calls,
            cost_usd=sum(known) if known and len(known) == len(costs) else None,
        )


def total(parts: Iterable[Usage]) -> Usage:
    """Return the sum of all."""
    return reduce(Usage.plus, parts, Usage())
