"""Which scores still stand: those of a dear scorer that is the same and reads the same. A cheap one judges anew.

Dear is who is async, who says so (`judge.expensive = True`), and who took long for this very run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from subagents_nb.domain.plans.experiments import Score
from subagents_nb.launching.judging.scorer_identity import OURS, scorer_hash
from subagents_nb.launching.judging.scorer_reads import Reads, what_it_reads

SLOW_S = 0.05  # no model answers as fast, and thousands of runs are judged anew in a moment
_MOST_NAMES = 20
_BY = re.compile(r"[0-9a-f]{12}( [0-9a-f]{8})?")
_quick: set[str] = set()  # hashes of those that were fast: what they read does not matter


def unwrapped(scorer: Any) -> Any:
    """Return what really judges."""
    while OURS in getattr(scorer, "__dict__", {}):
        scorer = vars(scorer)[OURS]
    return scorer


def is_dear(scorer: Any) -> bool:
    """Say whether a scorer says that it is dear, or is async, as those are that ask models."""
    inner = unwrapped(scorer)
    calls = (inner, *(getattr(type(inner), name, None) for name in ("__call__", "evaluate")))
    return getattr(inner, "expensive", False) is True or any(map(inspect.iscoroutinefunction, calls))


class Signing:
    """By what the scores of one call are known. Begun before the call: what it fills itself is no part of it."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        self._hash = scorer_hash(scorer)
        self.dear = is_dear(scorer)
        self._before: Reads | None = what_it_reads(scorer) if self.dear or self._hash not in _quick else None

    def end(self, seconds: float) -> tuple[str, tuple[str, ...]]:
        """Return the hash of what judged, and the names of what was not checked of it."""
        if not self.dear and seconds < SLOW_S:
            _quick.add(self._hash)
            return self._hash, ()
        after = what_it_reads(self._scorer)
        before = self._before or after
        filled = before.changed(after)
        return before.digest(filled), tuple(sorted(before.unchecked | filled))[:_MOST_NAMES]


def is_by(score: Score, head: str) -> bool:
    """Say whether a score is of the scorer that is called so: hashes follow, of what judged and of its case."""
    return _BY.fullmatch(score.by.removeprefix(f"{head} ")) is not None


def given_by(scores: Sequence[Score], head: str) -> list[Score]:
    """Return all scores of a scorer by its name, the latest last."""
    return sorted((one for one in scores if is_by(one, head)), key=lambda score: (score.at, score.score_id))


def last_of(scores: Sequence[Score], head: str) -> Score | None:
    """Return the latest score of a scorer by its name."""
    return next(reversed(given_by(scores, head)), None)


def stands(scorer: Any, last: Score | None, *, head: str, about: str) -> bool:
    """Say whether what a scorer last gave would be the same today, as far as that can be told without a call."""
    if last is None or not (is_dear(scorer) or (last.seconds or 0.0) >= SLOW_S):
        return False
    reads = what_it_reads(scorer)
    if len(last.unchecked) >= _MOST_NAMES:
        return False
    return last.by == f"{head} {reads.digest(frozenset(last.unchecked))}{about}"
