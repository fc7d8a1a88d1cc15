"""What is known of one metric in all groups: means, differences, who is better, which is the best. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from subagents_nb.experiments.comparison.grouping import DONE, FIGURES, Group
from subagents_nb.experiments.statistics.differences import (
    cases_needed,
    holm,
    paired,
    ratio,
    separate,
    told_apart,
    within,
)
from subagents_nb.experiments.statistics.estimates import Estimate, estimate, is_share, summary
from subagents_nb.experiments.statistics.reducers import mean

ALPHA = 0.05
SMALL = 0.05  # the difference of shares of which a comparison says how many cases it takes
_NOISE = 0.2  # repeats that make less of the variance than this hardly help


class Power(NamedTuple):
    """Which difference the cases tell apart with 80 %, and how many cases tell a small one apart."""

    n: int
    told: float
    needed: int | None  # None: it is no share, so that nobody knows what is small
    repeats_help: bool | None  # None: nothing was repeated


class Inference:
    """One metric of a comparison. Groups are known by their place."""

    def __init__(self, groups: Sequence[Group], metric: str, *, lower: bool, baseline: int | None) -> None:
        self._groups = groups
        self._metric = metric
        self._lower = lower
        self._baseline = baseline
        self.is_figure = metric in FIGURES
        every = (value for one in groups for values in one.repeats.get(metric, {}).values() for value in values)
        self.is_share = not self.is_figure and is_share(every)
        self.over_repeats = any(metric in one.over_repeats for one in groups)
        self._estimates: dict[int, Estimate] = {}
        self._differences: dict[tuple[int, int], Estimate] = {}
        self._chances: dict[int, float] | None = None
        self._best: list[int] | None = None

    def values(self, at: int) -> dict[str, float]:
        """Return what a group's units came to."""
        return self._groups[at].units.get(self._metric, {})

    def estimate(self, at: int) -> Estimate:
        """Return mean and interval of a group."""
        if at not in self._estimates:
            one, units = self._groups[at], self.values(at)
            self._estimates[at] = estimate(
                list(units.values()),
                share=self.is_share,
                skewed=self.is_figure,
                judgements=sum(map(len, one.repeats.get(self._metric, {}).values())),
                clusters=[one.clusters.get(unit, unit) for unit in units],
            )
        return self._estimates[at]

    def summary(self, at: int) -> Estimate:
        """Return the mean of a group; of a figure without its interval, which takes longer."""
        return summary(list(self.values(at).values())) if self.is_figure else self.estimate(at)

    def difference(self, at: int, other: int) -> Estimate:
        """Return the difference of two groups over what both have."""
        if (at, other) not in self._differences:
            mine, theirs = self.values(at), self.values(other)
            if self.over_repeats:
                found = separate(list(mine.values()), list(theirs.values()), share=self.is_share)
            else:
                both, clusters = self._both(at, other)
                found = paired([mine[u] for u in both], [theirs[u] for u in both], clusters, share=self.is_share)
            self._differences[at, other] = found
        return self._differences[at, other]

    def ratio(self, at: int, other: int) -> Estimate | None:
        """Return how many times as much money, tokens or time a group took; None of anything else."""
        if not self.is_figure:
            return None
        mine, theirs = self.values(at), self.values(other)
        if self.over_repeats:
            return ratio(list(mine.values()), list(theirs.values()), None)
        both, clusters = self._both(at, other)
        return ratio([mine[unit] for unit in both], [theirs[unit] for unit in both], clusters)

    def chance(self, at: int) -> float | None:
        """Return how likely the difference to the baseline is where there is none, beside those of the other groups."""
        if self._chances is None:
            others = [other for other in range(len(self._groups)) if other != self._baseline]
            found = {other: p for other in others if (p := self._chance(other, self._baseline)) is not None}
            self._chances = holm(found)
        return self._chances.get(at)

    def compared(self) -> int:
        """Return how many groups are held against the baseline."""
        self.chance(-1)
        return len(self._chances or ())

    def verdict(self, at: int) -> str:
        """Say how a group stands against the baseline: better, worse, or unclear; nothing where nothing is known."""
        if self._baseline is None or at == self._baseline:
            return ""
        difference = self.difference(at, self._baseline)
        if difference.mean is None:
            return ""
        p = self.chance(at)
        if p is None or p >= ALPHA or difference.mean == 0:
            return "unclear"
        return "better" if (difference.mean < 0) == self._lower else "worse"

    def best(self) -> list[int]:
        """Return the group that is better than each other one, if there is one.

        It is one where all were judged on the same cases, and the difference to each other group is no chance. As that
        is asked of every pair, a best among equals is named in less than one of twenty tables. A group of which every
        run failed is not the best by failing fast.
        """
        if self._best is None:
            able = [at for at, one in enumerate(self._groups) if not self.is_figure or one.count(DONE)]
            means = [(value, at) for at in able if (value := self.summary(at).mean) is not None]
            self._best = self._leader(means) if len(means) == len(able) > 1 else []
        return self._best

    def _leader(self, means: list[tuple[float, int]]) -> list[int]:
        _, top = min(means) if self._lower else max(means)
        rest = [at for _, at in means if at != top]
        if not self.over_repeats and any(self.values(at).keys() != self.values(top).keys() for at in rest):
            return []
        chances = [self._chance(top, at) for at in rest]
        return [top] if all(p is not None and p < ALPHA for p in chances) else []

    def power(self) -> Power | None:
        """Return what the cases tell apart, by the differences to the baseline that vary most."""
        if self._baseline is None or self.over_repeats or self.is_figure:
            return None
        found = [(self.difference(at, self._baseline), at) for at in range(len(self._groups)) if at != self._baseline]
        known = [(one.sd, one.n, at) for one, at in found if one.sd and one.n > 1]
        if not known:
            return None
        sd, n, at = max(known)
        number = self.compared()
        needed = cases_needed(sd, SMALL, comparisons=number) if self.is_share else None
        both, clusters = self._both(at, self._baseline)
        if len(set(clusters)) < len(clusters):
            return None  # how many clusters it takes is another question
        mine, theirs = (self._groups[one].repeats.get(self._metric, {}) for one in (at, self._baseline))
        noise = within([mine[unit] for unit in both], [theirs[unit] for unit in both])
        return Power(
            n, told_apart(sd, n, comparisons=number), needed, None if noise is None else noise > _NOISE * sd * sd
        )

    def as_wrong(self, at: int) -> float | None:
        """Return a share with failed runs counted as wrong; None where none failed or they are in it already."""
        one = self._groups[at]
        failed, judged = one.failed.get(self._metric, {}), one.repeats.get(self._metric, {})
        if not self.is_share or not failed or one.failed_as_wrong:
            return None
        wrong = 1.0 if self._lower else 0.0
        lost = {unit: [wrong] * count for unit, count in failed.items()}
        if self.over_repeats:
            cases = [[value] for values in (*judged.values(), *lost.values()) for value in values]
        else:
            cases = [[*judged.get(unit, []), *lost.get(unit, [])] for unit in dict.fromkeys([*judged, *lost])]
        return sum(map(mean, cases)) / len(cases)

    def _chance(self, at: int, other: int | None) -> float | None:
        """Return the probability by which two groups are told apart; of figures that of their ratio."""
        if other is None:
            return None
        held = self.ratio(at, other)
        return self.difference(at, other).p if held is None or held.p is None else held.p

    def _both(self, at: int, other: int) -> tuple[list[str], list[str]]:
        mine, theirs = self.values(at), self.values(other)
        both = [unit for unit in mine if unit in theirs]
        return both, [self._groups[at].clusters.get(unit, unit) for unit in both]
