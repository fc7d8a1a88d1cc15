"""Runs in groups by the parameters in which they differ, and what was judged of each. Pure: rows in, groups out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.plans.experiments import ParamValue
from subagents_nb.domain.plans.grid import parsed
from subagents_nb.domain.values.words import one_line
from subagents_nb.experiments.rows import RunRow

DONE = frozenset({"complete", "partial"})
LIVE = frozenset({"queued", "running"})
FIGURES = ("cost_usd", "tokens", "seconds")  # known of every run; less is better
BY_NAME = ("name",)


@dataclass(slots=True)
class Group:
    """Runs with the same parameters. `units` holds for each metric what was judged: a case, else a repetition."""

    params: dict[str, ParamValue]
    rows: list[RunRow] = field(default_factory=list)
    units: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the group in one line."""
        return ", ".join(f"{one_line(k, 40)}={param_text(v)}" for k, v in self.params.items()) or "all runs"

    def count(self, states: Iterable[str]) -> int:
        """Return how many runs are in one of these states."""
        return sum(row.state in states for row in self.rows)


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


def group(rows: Sequence[RunRow], by: Sequence[str], others: Sequence[str]) -> list[Group]:
    """Return the groups in the order in which they come. `others` differ too, and tell apart what is judged."""
    groups: dict[str, Group] = {}
    for row in rows:
        known: dict[str, ParamValue] = {"name": row.name} if tuple(by) == BY_NAME else params_of(row)
        params = {name: known.get(name) for name in by}
        groups.setdefault(json.dumps(list(params.values())), Group(params)).rows.append(row)
    several = any(row.repeat for row in rows) or not all(row.sweep for row in rows)
    for one in groups.values():
        _judge(one, others, several=several)
    return list(groups.values())


def _judge(one: Group, others: Sequence[str], *, several: bool) -> None:
    values: dict[str, dict[str, list[float]]] = {}
    seen: dict[str, int] = {}
    for row in one.rows:
        about = [f"{one_line(name, 40)}={param_text(params_of(row).get(name))}" for name in others]
        # The same task told apart by its repetition; without a sweep by which run of its kind it is.
        task = "" if row.sweep else f"{row.task_sha256}"
        kind = "\0".join([task, *about])
        seen[kind] = seen.get(kind, 0) + 1
        repeat = row.repeat if isinstance(row.repeat, int) else seen[kind] - 1
        once = [f"repeat {repeat + 1}"] if several or not about else []
        by_itself = ", ".join([*about, *once, *([f"task {task[:8]}"] if task else [])])
        for (name, case), value in row.scores.items():
            unit = by_itself if case is None else ", ".join([*about, case])
            values.setdefault(name, {}).setdefault(unit, []).append(value)
        for name, figure in figures(row).items():
            values.setdefault(name, {}).setdefault(by_itself, []).append(figure)
    one.units = {name: {unit: sum(v) / len(v) for unit, v in units.items()} for name, units in values.items()}


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
    """Say whether a group has these parameters. A text means what it would mean behind --sweep, too: 0 is 0.0."""
    return all(name in one.params and _means(value, one.params[name]) for name, value in wanted.items())


def _means(given: Any, value: ParamValue) -> bool:
    if param_text(value) == str(given):
        return True
    wanted = parsed(given) if isinstance(given, str) and not isinstance(value, str) else given
    return bool(wanted == value) and isinstance(wanted, bool) == isinstance(value, bool)
