"""Runs in groups by the parameters in which they differ, and what was judged of each. Pure: rows in, groups out.

What was judged is told apart by the *case*: the values of the parameters that make no groups, and what a score itself
names as its case. Runs of one case are its repeats, and a case counts once, however often it was repeated. Where there
is one case alone, its repeats are what is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.plans.experiments import ParamValue
from subagents_nb.domain.plans.grid import parsed
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparison.changes import is_named_here
from subagents_nb.experiments.plan_parts import TASK
from subagents_nb.experiments.rows import RunRow
from subagents_nb.experiments.statistics.estimates import is_share
from subagents_nb.experiments.statistics.reducers import mean, of_shares, reducer

DONE = frozenset({"complete", "partial"})
LIVE = frozenset({"queued", "running"})
NO_FAILURE = DONE | LIVE | {"stopped", "paused"}  # stopped by a person, or not at its end
FIGURES = ("cost_usd", "tokens", "seconds")  # known of every run; less is better
BY_NAME = ("name",)
CASE = "case"  # the parameter that holds the id of a case
_NUMBERED = re.compile(r"v\d+\Z")

Judgements = dict[str, dict[str, list[tuple[int | None, float]]]]  # by metric and case: the repeat, what was judged


@dataclass(slots=True)
class Group:
    """Runs with the same parameters. `units` holds for each metric one value of each case, else of each repeat."""

    params: dict[str, ParamValue]
    rows: list[RunRow] = field(default_factory=list)
    units: dict[str, dict[str, float]] = field(default_factory=dict)
    repeats: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # what each unit was made of
    clusters: dict[str, str] = field(default_factory=dict)  # by unit: with which it belongs together
    failed: dict[str, dict[str, int]] = field(default_factory=dict)  # by metric and case: how many runs failed
    failed_as_wrong: bool = False  # they are among the judgements, as wrong answers
    over_repeats: set[str] = field(default_factory=set)  # the metrics of one case alone: their units are its repeats
    tasks: int = 1  # how many different tasks its runs had
    several: tuple[str, ...] = ()  # what of their plans differs in it beside parameters

    @property
    def label(self) -> str:
        """Return the group in one line."""
        return ", ".join(f"{one_line(k, 40)}={param_text(v)}" for k, v in self.params.items()) or "all runs"

    def count(self, states: Iterable[str]) -> int:
        """Return how many runs are in one of these states."""
        return sum(row.state in states for row in self.rows)


def place_of(one: Group, groups: Sequence[Group]) -> int:
    """Return where a group stands among others; one of another comparison is known by its parameters.

    Raises:
        RequestError: it is not among them.
    """
    places = [at for at, other in enumerate(groups) if other is one]
    places += [at for at, other in enumerate(groups) if other.params == one.params]
    if not places:
        raise RequestError(f"This comparison has no group {one.label}.")
    return places[0]


def param_text(value: ParamValue) -> str:
    """Say a parameter's value; one that is not there too."""
    return "–" if value is None else one_line(value if isinstance(value, str) else json.dumps(value), 60)


def params_of(row: RunRow) -> dict[str, ParamValue]:
    """Return a run's parameters: what its plan came to, and above that what the person named."""
    return row.resolved | row.params


def differing(rows: Sequence[RunRow]) -> tuple[str, ...]:
    """Return the names of the parameters that are not the same in all runs, those a person named first."""
    values_by_name: dict[str, set[str]] = {}
    for name in dict.fromkeys(name for row in rows for name in [*row.params, *row.resolved]):
        values_by_name[name] = {json.dumps(params_of(row).get(name)) for row in rows}
    return tuple(name for name, values in values_by_name.items() if len(values) > 1)


def same(rows: Sequence[RunRow], names: Sequence[str]) -> dict[str, ParamValue]:
    """Return the parameters that are the same in all runs."""
    first = params_of(rows[0]) if rows else {}
    return {k: v for k, v in first.items() if k not in names and all(params_of(row).get(k) == v for row in rows)}


def group(
    rows: Sequence[RunRow],
    by: Sequence[str],
    others: Sequence[str],
    *,
    cluster: str | None = None,
    failed: str | None = None,
    reduce: str = "mean",
    lower: Iterable[str] = (),
) -> list[Group]:
    """Return the groups in the order in which they come. `others` differ too, and tell the cases apart."""
    groups: dict[str, Group] = {}
    for row in rows:
        known: dict[str, ParamValue] = {"name": row.name} if tuple(by) == BY_NAME else params_of(row)
        params = {name: known.get(name) for name in by}
        groups.setdefault(json.dumps(list(params.values())), Group(params)).rows.append(row)
    found = list(groups.values())
    judged = [_judgements(one, others, cluster) for one in found]
    for metric in dict.fromkeys(name for one in judged for name in one):
        share = metric not in FIGURES and is_share(v for one in judged for v in _all(one.get(metric, {})))
        if share:
            _count_failures(found, judged, metric, others, failed, wrong=1.0 if metric in lower else 0.0)
        cases = {case for one in judged for case in one.get(metric, {})}
        counted = "mean" if metric in FIGURES or (of_shares(reduce) and not share) else reduce
        for one, values in zip(found, judged, strict=True):
            if metric in values:
                _take(one, metric, values[metric], counted, alone=len(cases) == 1)
    return found


def _judgements(one: Group, others: Sequence[str], cluster: str | None) -> Judgements:
    judged: Judgements = {}
    one.tasks = len({row.resolved.get(TASK) for row in one.rows})
    beside = [name for name in others if all(is_named_here(row, name) for row in one.rows)]
    one.several = tuple(n for n in beside if len({row.resolved.get(n) for row in one.rows}) > 1)
    for row in one.rows:
        known = params_of(row)
        about = _case(row, others)
        # Of one item asked for by several tasks or prompts, and of one answer judged in several ways, no part is by
        # itself.
        shared = ", ".join(_said(row, name) for name in others if name not in beside)
        together = None if cluster is None else param_text(known.get(cluster, row.about.get(cluster)))
        for (name, case), value in row.scores.items():
            unit = about if case is None else ", ".join(filter(None, [about, case]))
            judged.setdefault(name, {}).setdefault(unit, []).append((row.repeat, value))
            one.clusters[unit] = together or shared or unit
        for name, figure in figures(row).items():
            judged.setdefault(name, {}).setdefault(about, []).append((row.repeat, figure))
            one.clusters.setdefault(about, together or shared or about)
    return judged


def _case(row: RunRow, others: Sequence[str]) -> str:
    return ", ".join(_said(row, name) for name in others)


def _said(row: RunRow, name: str) -> str:
    value = params_of(row).get(name)
    return param_text(value) if name == CASE and value is not None else f"{one_line(name, 40)}={param_text(value)}"


def _count_failures(
    groups: Sequence[Group],
    judged: Sequence[Judgements],
    metric: str,
    others: Sequence[str],
    failed: str | None,
    *,
    wrong: float,
) -> None:
    """Note of a share which judgements failed runs are without; they are wrong answers where the person says so."""
    units: dict[str, set[str]] = {}
    for one in groups:
        for row in one.rows:
            about = _case(row, others)
            for name, case in row.scores:
                if name == metric:
                    units.setdefault(about, set()).add(
                        about if case is None else ", ".join(filter(None, [about, case]))
                    )
    whole = any(key == (metric, None) for one in groups for row in one.rows for key in row.scores)
    for one, values in zip(groups, judged, strict=True):
        for row in one.rows:
            if row.state in NO_FAILURE:
                continue
            about = _case(row, others)
            for unit in units.get(about, {about} if whole else set()):
                count = one.failed.setdefault(metric, {})
                count[unit] = count.get(unit, 0) + 1
                one.clusters.setdefault(unit, unit)
                if (failed or row.failed) == "wrong":
                    one.failed_as_wrong = True
                    values.setdefault(metric, {}).setdefault(unit, []).append((row.repeat, wrong))


def _take(one: Group, metric: str, cases: dict[str, list[tuple[int | None, float]]], how: str, *, alone: bool) -> None:
    """Make of the judgements what is counted: of each case one value, or the repeats of the only one."""
    if alone and how == "mean":
        ((case, values),) = cases.items()
        units: dict[str, list[float]] = {}
        for place, (repeat, value) in enumerate(values):
            number = place if repeat is None else repeat
            while f"{case}\0{number}" in units:  # launched anew, so that it stands there twice
                number += 1
            units[f"{case}\0{number}"] = [value]
        one.repeats[metric] = {_repeat(key): value for key, value in units.items()}
        one.clusters |= {unit: unit for unit in one.repeats[metric]}
        one.over_repeats.add(metric)
    else:
        one.repeats[metric] = {case: [value for _, value in values] for case, values in cases.items()}
    make = mean if how == "mean" else reducer(how)
    one.units[metric] = {unit: make(values) for unit, values in one.repeats[metric].items()}


def _repeat(key: str) -> str:
    case, _, number = key.rpartition("\0")
    return ", ".join(filter(None, [case, f"repeat {int(number) + 1}"]))


def _all(cases: Mapping[str, Sequence[tuple[int | None, float]]]) -> Iterable[float]:
    return (value for values in cases.values() for _, value in values)


def figures(row: RunRow) -> dict[str, float]:
    """Return what a run that has ended took: money, tokens, time; what is not known is not there."""
    if row.state in LIVE:
        return {}
    values: dict[str, float] = {}
    cost, tokens = row.usage.get("cost_usd"), [row.usage.get("input_tokens"), row.usage.get("output_tokens")]
    if cost is not None:
        values["cost_usd"] = float(cost)
    if any(part is not None for part in tokens):
        values["tokens"] = float(sum(part or 0 for part in tokens))
    if row.seconds is not None:
        values["seconds"] = row.seconds
    return values


def fits(one: Group, wanted: Mapping[str, Any]) -> bool:
    """Say whether a group has these parameters. A text means what it would mean behind --sweep, too: 0 is 0.0.

    Of a value that was numbered here, its number will do: `v2` for `v2 3f2a1b`.
    """
    return all(name in one.params and _means(value, one.params[name]) for name, value in wanted.items())


def _means(given: Any, value: ParamValue) -> bool:
    if param_text(value) == str(given) or (_NUMBERED.match(str(given)) and str(value).startswith(f"{given} ")):
        return True
    wanted = parsed(given) if isinstance(given, str) and not isinstance(value, str) else given
    return bool(wanted == value) and isinstance(wanted, bool) == isinstance(value, bool)
