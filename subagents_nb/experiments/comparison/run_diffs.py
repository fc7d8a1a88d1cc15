"""What two runs differ in: how they were planned, what they were told, what they came to."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from typing import Any

from subagents_nb.above import above
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.values.words import plain
from subagents_nb.experiments.comparison.side_by_side import MAX_LINES, Row, side_by_side
from subagents_nb.launching import Run
from subagents_nb.launching.stored.selecting import runs_of

_HUNK = re.compile(r"@@ -\d")
_TEXTS = ("task", "system_prompt")
_PASSING = {"index", "agent_where", "label", *_TEXTS}


_OF_THE_RUN = {"mode", "max_parallel", "tags", *(one.stored for one in OPTIONS if one.kind != "remark")} - {"name"}


class Part:
    """One thing that differs: its name, unified lines of the difference, and both sides of it."""

    def __init__(self, name: str, before: str, after: str) -> None:
        self.name = name
        self.lines = tuple(_unified(before, after))
        self._sides = (before, after)

    @property
    def rows(self) -> list[Row]:
        """Return both sides line by line, with the words marked in which they differ; none for marks not shown."""
        return list(side_by_side(*self._sides))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the comparison itself has to say."""
        return tuple(line.strip("@ ") for line in self.lines if line.startswith("@@ ") and not _HUNK.match(line))


class Diff:
    """What differs between two runs, part by part; parts that are the same are not there."""

    def __init__(self, a: Run, b: Run, parts: list[Part]) -> None:
        self.names = (a.name, b.name)
        self.parts = tuple(parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def text(self) -> str:
        """Return all of it as text."""
        head = f"--- {self.names[0]}\n+++ {self.names[1]}"
        if not self.parts:
            return f"{head}\nThey do not differ."
        return "\n".join([head, *(line for part in self.parts for line in (f"== {part.name}", *part.lines))])

    def __repr__(self) -> str:
        return plain(self.text)

    def _repr_html_(self) -> str:
        return str(above("diff_html")(self))


def diff(a: Any, b: Any) -> Diff:
    """Return what two runs differ in: plan, prompts, outputs. Each is a Run, an id or a name.

    Raises:
        UnknownRun, AmbiguousRun: an id or name does not fit one run.
        StoreError: a plan can't be read.
    """
    (one,), (other,) = runs_of(a), runs_of(b)
    before, after = dict(_texts(one)), dict(_texts(other))
    parts = [Part(name, before.get(name, ""), after.get(name, "")) for name in dict.fromkeys([*before, *after])]
    return Diff(one, other, [part for part in parts if part.lines])


def _texts(run: Run) -> Iterator[tuple[str, str]]:
    plan = run.plan
    yield "plan", _flat(_fields(plan))
    for step in plan.steps:
        where = f"steps[{step.index}] " if len(plan.steps) > 1 else ""
        yield f"{where}plan", _flat(_step_fields(step))
        for name in _TEXTS:
            yield f"{where}{name.replace('_', ' ')}", getattr(step, name)
    snapshot = run.status
    yield "end", _flat({"state": str(snapshot.state), "reason": snapshot.reason, "error": snapshot.error})
    yield "output", _output(run)


def _fields(plan: LaunchPlan) -> dict[str, Any]:
    fields = plan.model_dump(mode="json", include=_OF_THE_RUN, exclude_none=True)
    fields["items"] = [item.model_dump(mode="json", exclude={"template"}) for item in plan.items]
    fields["inputs"] = [one.contract() for one in plan.inputs]
    return fields | {"experiment": plan.experiment.model_dump(mode="json", exclude={"lineage", "cell"})}


def _step_fields(step: StepPlan) -> dict[str, Any]:
    return step.model_dump(mode="json", exclude=_PASSING, exclude_none=True)


def _output(run: Run) -> str:
    snapshot = run.status
    if snapshot.has_value:
        return json.dumps(snapshot.value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
    return run.text


def _flat(value: Any, path: str = "") -> str:
    """Return one line for each single value, so that a difference names what it is about."""
    if isinstance(value, dict) and value:
        return "\n".join(_flat(one, f"{path}.{key}" if path else str(key)) for key, one in sorted(value.items()))
    return f"{path}: {json.dumps(value, ensure_ascii=False, default=str)}"


def _unified(before: str, after: str) -> Iterator[str]:
    if before == after:
        return
    old, new = plain(before).splitlines(), plain(after).splitlines()
    if old == new:
        yield "@@ they differ in marks that are not shown @@"
        return
    lines = list(difflib.unified_diff(old[:MAX_LINES], new[:MAX_LINES], lineterm="", n=2))[2:]
    yield from lines
    if max(len(old), len(new)) > MAX_LINES:
        yield f"@@ only the first {MAX_LINES:,} lines were compared @@"
