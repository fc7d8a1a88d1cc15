"""In what compared runs differ beside their parameters: parts of their plans, and the model that answered. Pure.

A part that follows from parameters is none of its own: other agents have other prompts. One that differs where they
are the same is a parameter, so that answers to two prompts are never one number; its values are numbered in the order
of launch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from subagents_nb.domain.plans.experiments import ParamValue
from subagents_nb.domain.plans.options import BY_NAME
from subagents_nb.experiments.comparison.tasks import name_tasks
from subagents_nb.experiments.plan_parts import AGENT_FILE, TASK
from subagents_nb.experiments.rows import RunRow

ANSWERED, INPUTS = "model_answered", "inputs"
# The causes first: what differs with an earlier one is not named again.
_PARTS = (AGENT_FILE, INPUTS, "schema", "skills", "tools", "system_prompt", "settings")
NAMES = (TASK, *_PARTS, ANSWERED)
_BESIDE = " of the plan"  # where a person named a parameter so, and it says something else
_SAYS_SO = {AGENT_FILE: "agent", ANSWERED: "model"}  # each has its own: no word about that
_WIDTH = 60
_DONE = ("complete", "partial")


class Change(NamedTuple):
    """One value of a parameter that was named here, and the first line in which it differs from the value before."""

    name: str
    value: str
    before: str
    line: str


class Changes(NamedTuple):
    """What differs: by parameters of their own, and what with which parameters."""

    own: tuple[Change, ...] = ()
    following: tuple[tuple[str, str], ...] = ()


def name_changes(rows: Sequence[RunRow]) -> Changes:
    """Give rows a parameter for each part in which they differ otherwise than their parameters say."""
    name_tasks(rows)
    own = [*_changes(rows, TASK, TASK)] if any(TASK in row.resolved for row in rows) else []
    following: list[tuple[str, str]] = []
    for name in (*_PARTS, ANSWERED):
        values = _answered(rows) if name == ANSWERED else _digests(rows, name)
        if len(set(values.values())) < 2:
            continue
        cause = _cause(rows, values)
        if cause is not None:
            if cause != _SAYS_SO.get(name, name):
                following.append((name, cause))
            continue
        called = f"{name}{_BESIDE}" if any(name in row.params for row in rows) else name
        labels = {value: value for value in values.values()} if name == ANSWERED else _numbered(rows, values)
        for at, value in values.items():
            rows[at].resolved = rows[at].resolved | {called: labels[value]}
        own += [] if name == ANSWERED else _changes(rows, called, name)
    return Changes(tuple(own), tuple(following))


def is_named_here(row: RunRow, name: str) -> bool:
    """Say whether a parameter was named here, and by nobody else."""
    return name.removesuffix(_BESIDE) in NAMES and name not in row.params


def _digests(rows: Sequence[RunRow], name: str) -> dict[int, str]:
    """Return what each run has; a plan that can't be read says nothing."""
    return {at: row.parts.get(name, "") for at, row in enumerate(rows) if row.parts}


def _answered(rows: Sequence[RunRow]) -> dict[int, str]:
    """Return who answered; a run without an answer is as the others of its model where these agree."""
    found = {at: said for at, row in enumerate(rows) if (said := row.answered or (row.state in _DONE and row.model))}
    others: dict[str | None, set[str]] = {}
    for at, said in found.items():
        others.setdefault(rows[at].model, set()).add(said)
    for at, row in enumerate(rows):
        if at not in found and row.model is not None:
            known = others.get(row.model, set())
            found[at] = next(iter(known)) if len(known) == 1 else "not known"
    return found if others else {}


def _cause(rows: Sequence[RunRow], values: dict[int, str]) -> str | None:
    """Return the parameters from which a part follows; None: it differs by itself.

    A name of a sweep that stands in the task alone changes nothing else of a plan, and who asks in a loop may have
    named by a parameter of their own what they changed: then each of its values goes with one of the part's.
    """
    known: list[dict[str, ParamValue]] = [row.resolved | row.params for row in rows]
    settings = [
        name
        for name in dict.fromkeys(name for row in rows for name in [*row.resolved, *row.params])
        if name != TASK and (name in BY_NAME or any(name in row.resolved for row in rows))
    ]
    for name in settings:
        if _follows(known, [name], values):
            return name
    if not any(row.sweep for row in rows):
        for name in dict.fromkeys(name for row in rows for name in [*row.params, *row.resolved]):
            if name not in settings and _follows(known, [name], values, each=True):
                return name
    apart = [name for name in settings if len({json.dumps(known[at].get(name)) for at in values}) > 1]
    return ", ".join(apart) if _follows(known, apart, values) else None


def _follows(
    known: Sequence[dict[str, ParamValue]], names: Sequence[str], values: dict[int, str], *, each: bool = False
) -> bool:
    pairs = {(json.dumps([known[at].get(name) for name in names]), value) for at, value in values.items()}
    left, right = {one for one, _ in pairs}, {other for _, other in pairs}
    return len(pairs) == len(left) and (not each or len(left) == len(right))


def _numbered(rows: Sequence[RunRow], values: dict[int, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at in sorted(values, key=lambda at: rows[at].run_id):
        found.setdefault(values[at], f"v{len(found) + 1} {values[at][:6]}" if values[at] else f"v{len(found) + 1} none")
    return found


def _changes(rows: Sequence[RunRow], called: str, name: str) -> Iterator[Change]:
    """Yield for each value but the first where it begins to differ from the one before."""
    first: dict[str, RunRow] = {}
    for row in sorted(rows, key=lambda row: row.run_id):
        if isinstance(value := row.resolved.get(called), str):
            first.setdefault(value, row)
    known = list(first.items())
    for (before, old), (value, new) in pairwise(known):
        twin = next((row for row in rows if row.resolved.get(called) == before and row.params == new.params), old)
        yield Change(called, value, before, _first_line(twin, new, name))


def _first_line(old: RunRow, new: RunRow, name: str) -> str:
    if name == AGENT_FILE:  # its text is not kept; what came of it is
        parts = [part for part in ("system_prompt", *_PARTS[1:]) if old.parts.get(part) != new.parts.get(part)]
        return f"{parts[0]}, {_first_line(old, new, parts[0])}" if parts else "in nothing that the plan holds"
    before, after = (row.texts.get(row.parts.get(name, ""), "").splitlines() for row in (old, new))
    for number in range(max(len(before), len(after))):
        one, other = (lines[number] if number < len(lines) else "" for lines in (before, after))
        if one != other:
            return f"line {number + 1}: “{_around(one, other)}” → “{_around(other, one)}”"
    return "past what is held of it, or in marks that are not shown"


def _around(line: str, other: str) -> str:
    """Return as much of a line as can be shown, with the place where it begins to differ."""
    same = next((at for at, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    begin = max(0, same - _WIDTH // 3) if len(line) > _WIDTH or same > _WIDTH else 0
    shown = line[begin : begin + _WIDTH]
    return f"{'…' if begin else ''}{shown}{'…' if begin + _WIDTH < len(line) else ''}"
