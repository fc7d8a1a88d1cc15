"""Do intervals hold the truth as often as they say, and is a word said that is chance? Experiments of known truth.

    python -m benchmarks.coverage --rounds 2000

No run is launched: groups are made of drawn judgements, and everything after that is what `compare` does.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from subagents_nb.experiments.comparison.grouping import Group
from subagents_nb.experiments.comparison.inference import Inference

METRIC, FIGURE = "right", "seconds"
Draw = Callable[[random.Random], float]


class Outcome(NamedTuple):
    """What came of many experiments of one design."""

    design: str
    what: str  # "holds the truth", or what is said falsely
    share: float
    rounds: int


class Case(NamedTuple):
    """A case as it is drawn: its judgements, and with which others it belongs together."""

    values: list[float]
    cluster: str | None = None


def a_group(cases: Sequence[Case], metric: str = METRIC, *, of_one_case: bool = False) -> Group:
    """Return a group as grouping makes it of runs."""
    one = Group({})
    if of_one_case:
        cases = [Case([value]) for value in cases[0].values]
        one.over_repeats.add(metric)
    one.repeats[metric] = {f"c{place}": case.values for place, case in enumerate(cases)}
    one.units[metric] = {unit: math.fsum(values) / len(values) for unit, values in one.repeats[metric].items()}
    one.clusters = {f"c{place}": case.cluster or f"c{place}" for place, case in enumerate(cases)}
    return one


def right(chance: float, times: int, dice: random.Random) -> list[float]:
    """Return judgements that are right with a chance."""
    return [float(dice.random() < chance) for _ in range(times)]


def held(groups: Sequence[Group], truth: float, metric: str = METRIC) -> bool:
    """Say whether the interval of the only group, or of the difference of two, holds the truth."""
    known = Inference(groups, metric, lower=False, baseline=0)
    found = known.estimate(0) if len(groups) == 1 else known.difference(1, 0)
    if found.low is None or found.high is None:
        return found.mean is not None and math.isclose(found.mean, truth) if found.n > 1 else True
    return found.low - 1e-12 <= truth <= found.high + 1e-12


class Design(NamedTuple):
    """One kind of experiment: how one is made, and what is asked of it."""

    name: str
    what: str
    round: Callable[[random.Random], bool]
    low: float  # where the share may lie with many rounds
    high: float


def designs() -> Iterator[Design]:
    """Yield every design that the documentation names."""
    yield from _means()
    yield from _differences()
    yield from _words()


TRUTH, WORD, BEST = "holds the truth", "a false word", "a false best"
EXACT, CAREFUL, FEW = (0.935, 0.965), (0.935, 1.0), (0.90, 1.0)


def _means() -> Iterator[Design]:
    for n in (3, 5, 10, 20, 50, 100, 500):

        def share(dice: random.Random, n: int = n) -> bool:
            truth = dice.uniform(0.05, 0.95)
            return held([a_group([Case(right(truth, 1, dice)) for _ in range(n)])], truth)

        yield Design(f"share, {n} cases", TRUTH, share, *EXACT)
    for a, b in ((0.5, 0.5), (2, 1)):
        for n, times in ((3, 10), (5, 10), (10, 3), (10, 10), (20, 10), (50, 3), (200, 3)):

            def repeated(dice: random.Random, a: float = a, b: float = b, n: int = n, times: int = times) -> bool:
                cases = [Case(right(dice.betavariate(a, b), times, dice)) for _ in range(n)]
                return held([a_group(cases)], a / (a + b))

            yield Design(
                f"share, {n} cases × {times}, their own chances Beta({a}, {b})",
                TRUTH, repeated, *(EXACT if n >= 20 else CAREFUL),
            )  # fmt: skip
    for n in (10, 40):

        def unequal(dice: random.Random, n: int = n) -> bool:
            cases = [Case(right(dice.betavariate(0.5, 0.5), dice.randint(1, 10), dice)) for _ in range(n)]
            return held([a_group(cases)], 0.5)

        yield Design(f"share, {n} cases × 1 to 10", TRUTH, unequal, *(EXACT if n > 10 else CAREFUL))
    for n in (10, 30, 100):

        def clustered(dice: random.Random, n: int = n) -> bool:
            cases = []
            for cluster in range(n):
                chance = dice.betavariate(1, 1)
                cases += [Case(right(chance, 1, dice), f"d{cluster}") for _ in range(dice.randint(2, 6))]
            return held([a_group(cases)], 0.5)

        yield Design(f"share, {n} clusters of 2 to 6 cases", TRUTH, clustered, *(EXACT if n > 10 else FEW))
    for n in (3, 5, 20, 100):

        def normal(dice: random.Random, n: int = n) -> bool:
            return held([a_group([Case([dice.gauss(4, 2)]) for _ in range(n)])], 4)

        yield Design(f"values, {n} cases", TRUTH, normal, *EXACT)

        def one_case(dice: random.Random, n: int = n) -> bool:
            values = [Case([dice.gauss(4, 2) for _ in range(n)])]
            return held([a_group(values, of_one_case=True)], 4)

        yield Design(f"values, one case × {n}", TRUTH, one_case, *EXACT)
    for n in (5, 10, 20, 50, 200, 500):

        def skewed(dice: random.Random, n: int = n) -> bool:
            seconds = [Case([dice.lognormvariate(0, 0.5)]) for _ in range(n)]
            return held([a_group(seconds, FIGURE)], math.exp(0.125), FIGURE)

        yield Design(f"seconds, {n} cases, skewed", TRUTH, skewed, *(EXACT if n >= 50 else FEW))


def _differences() -> Iterator[Design]:
    for n in (5, 10, 20, 50, 500):

        def shares(dice: random.Random, n: int = n) -> bool:
            base, gain = dice.uniform(0.2, 0.6), dice.uniform(0, 0.3)
            pairs = []
            for _ in range(n):
                level = dice.random()  # a hard case is hard for both
                again = level if dice.random() < 0.5 else dice.random()
                pairs.append((float(level < base), float(again < base + gain)))
            groups = [a_group([Case([pair[side]]) for pair in pairs]) for side in (0, 1)]
            return held(groups, gain)

        yield Design(f"difference of shares, {n} cases", TRUTH, shares, *(EXACT if n > 10 else CAREFUL))
    for n, times in ((5, 10), (10, 10), (20, 10), (50, 3), (200, 3)):

        def repeated(dice: random.Random, n: int = n, times: int = times) -> bool:
            mine, theirs = [], []
            for _ in range(n):
                chance = dice.betavariate(1, 1)
                theirs.append(Case(right(chance * 0.8, times, dice)))
                mine.append(Case(right(0.2 * dice.random() + chance * 0.8, times, dice)))
            return held([a_group(theirs), a_group(mine)], 0.1)

        yield Design(f"difference of shares, {n} cases × {times}", TRUTH, repeated, *(EXACT if n >= 20 else FEW))
    for n in (10, 30, 100):

        def clustered(dice: random.Random, n: int = n) -> bool:
            mine, theirs = [], []
            for cluster in range(n):
                shift = dice.gauss(1, 1)
                for _ in range(dice.randint(2, 6)):
                    base = dice.gauss(0, 1)
                    theirs.append(Case([base], f"d{cluster}"))
                    mine.append(Case([base + shift + dice.gauss(0, 1)], f"d{cluster}"))
            return held([a_group(theirs), a_group(mine)], 1)

        yield Design(f"difference, {n} clusters of 2 to 6 cases", TRUTH, clustered, *(EXACT if n > 10 else FEW))
    for n in (5, 20, 100):

        def two(dice: random.Random, n: int = n) -> bool:
            base, other = dice.uniform(0.2, 0.8), dice.uniform(0.2, 0.8)
            groups = [a_group([Case(right(chance, n, dice))], of_one_case=True) for chance in (base, other)]
            return held(groups, other - base)

        yield Design(f"difference of shares, one case × {n}", TRUTH, two, *(EXACT if n > 5 else CAREFUL))

        def welch(dice: random.Random, n: int = n) -> bool:
            made = [a_group([Case([dice.gauss(mean, sd) for _ in range(n)])], of_one_case=True)
                    for mean, sd in ((0, 1), (2, 2))]  # fmt: skip
            return held(made, 2)

        yield Design(f"difference of values, one case × {n}", TRUTH, welch, *EXACT)


def _words() -> Iterator[Design]:
    for settings in (2, 5, 11, 20):
        for n, times in ((5, 1), (30, 1), (20, 5)):

            def equal(
                dice: random.Random, settings: int = settings, n: int = n, times: int = times, ask: bool = False
            ) -> bool:
                known = _among_equals(dice, settings, n, times)
                if ask:
                    return bool(known.best())
                return any(known.verdict(at) in ("better", "worse") for at in range(1, settings))

            about = f"{settings} equal settings, {n} cases" + (f" × {times}" if times > 1 else "")
            yield Design(about, WORD, equal, 0.0, 0.055 if times == 1 else 0.065)
            yield Design(about, BEST, lambda dice, run=equal: run(dice, ask=True), 0.0, 0.055 if times == 1 else 0.065)  # type: ignore[misc]


def _among_equals(dice: random.Random, settings: int, n: int, times: int) -> Inference:
    chances = [dice.betavariate(2, 1) for _ in range(n)]
    groups = [a_group([Case(right(chance, times, dice)) for chance in chances]) for _ in range(settings)]
    return Inference(groups, METRIC, lower=False, baseline=0)


def measured(design: Design, rounds: int, seed: int = 0) -> Outcome:
    """Return what comes of so many experiments of a design, the same for the same seed."""
    dice = random.Random(f"{design.name} {design.what} {seed}")
    return Outcome(design.name, design.what, sum(design.round(dice) for _ in range(rounds)) / rounds, rounds)


def main() -> int:
    """Print a table; return 1 where a share lies outside of what the design allows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000, help="experiments of each design (2000)")
    rounds = parser.parse_args().rounds
    outside = 0
    print(f"| design, {rounds:,} experiments of each | | share | allowed |\n| --- | --- | --- | --- |")
    for design in designs():
        found = measured(design, rounds)
        # What is measured varies: of 2,000 experiments by 0.5 % and more.
        slack = 2.6 * math.sqrt(0.05 * 0.95 / rounds)
        good = design.low - slack <= found.share <= design.high + slack
        outside += not good
        allowed = f"{design.low:.1%} to {design.high:.1%}{'' if good else ' !'}"
        print(f"| {found.design} | {found.what} | {found.share:.1%} | {allowed} |", flush=True)
    return int(outside > 0)


if __name__ == "__main__":
    raise SystemExit(main())
