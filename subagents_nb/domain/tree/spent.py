"""What a tree of runs has used of what is its own as a whole, those included that went on from any of it since."""

from __future__ import annotations

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.usage import Usage, total


class Spent(Value):
    """Neither is ever given back: whoever goes on from a run has what this leaves."""

    usage: Usage = Usage()
    runs: int = 0  # children and steps of fan-outs that were admitted

    def __add__(self, other: Spent) -> Spent:
        return Spent(usage=total((self.usage, other.usage)), runs=self.runs + other.runs)
