"""Several judgements of one case made one: their mean, or what else the person asks for. Named as in Inspect."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence

from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError

Reducer = Callable[[Sequence[float]], float]
NAMES = "mean, median, mode (the majority), max, at_least_K, pass_at_K"
_COUNTED = re.compile(r"(at_least|pass_at)_([1-9]\d{0,3})")


def mean(values: Sequence[float]) -> float:
    """Return the mean; NaN if one of them is."""
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values) / len(values)


def reducer(name: str) -> Reducer:
    """Return what makes one value of the repeats of a case.

    Raises:
        RequestError: there is none of this name.
    """
    simple: dict[str, Reducer] = {"mean": mean, "median": statistics.median, "mode": _majority, "max": max}
    if name in simple:
        return simple[name]
    counted = _COUNTED.fullmatch(name) if isinstance(name, str) else None
    if counted is None:
        raise RequestError(f"There is no reducer {one_line(str(name), 40)!r}; there are {NAMES}.")
    number = int(counted[2])
    if counted[1] == "at_least":
        return lambda values: float(sum(value == 1 for value in values) >= number)
    return lambda values: _pass_at(number, values)


def of_shares(name: str) -> bool:
    """Say whether a reducer counts what is right, so that it has no meaning for other scores."""
    return _COUNTED.fullmatch(name) is not None or name == "mode"


def _majority(values: Sequence[float]) -> float:
    """Return what most say; 0.5 where as many say the one as the other."""
    right = sum(values) * 2
    return 0.5 if right == len(values) else float(right > len(values))


def _pass_at(k: int, values: Sequence[float]) -> float:
    """Return the chance that one of `k` is right (Chen 2021, without bias); NaN of fewer repeats than that."""
    n, right = len(values), sum(value == 1 for value in values)
    return math.nan if n < k else 1 - math.comb(n - right, k) / math.comb(n, k)
