"""Which runs were given the same task. Answers to different tasks are never averaged as if they were one case. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from subagents_nb.experiments.plan_parts import TASK
from subagents_nb.experiments.rows import RunRow

# They say who answers and how, never what is asked: with them alone a run's task is not named.
_SETTINGS = frozenset({"agent", "model", "thinking", "temperature", "max_requests", "schema", "experiment"})


def name_tasks(rows: Sequence[RunRow]) -> None:
    """Give rows a parameter `task` where runs of one setting and one item had several: the prompt was edited, perhaps.

    Runs of one sweep had one, filled with its values. It is left out where the params of a person name the item, so
    that each had but one.
    """
    labels = _labels(rows)
    had: dict[str, set[str]] = {}
    for row, label in zip(rows, labels, strict=True):
        named = {name: value for name, value in sorted(row.params.items()) if name not in _SETTINGS}
        had.setdefault(json.dumps(named), set()).add(label)
    if TASK in {name for row in rows for name in row.params} or all(len(tasks) < 2 for tasks in had.values()):
        return
    for row, label in zip(rows, labels, strict=True):
        row.resolved = row.resolved | {TASK: label}


def _labels(rows: Sequence[RunRow]) -> list[str]:
    """Return for each run a short name of its task: its number in the order of launch, and how its digest begins."""
    kind: dict[str, str] = {}

    def root(key: str) -> str:
        while kind.setdefault(key, key) != key:
            key = kind[key]
        return key

    keys = [[f"text {row.task_sha256}", *([f"sweep {row.sweep}"] if row.sweep else [])] for row in rows]
    for several in keys:
        for other in several[1:]:
            kind[root(several[0])] = root(other)
    number: dict[str, str] = {}
    for row, several in sorted(zip(rows, keys, strict=True), key=lambda pair: pair[0].run_id):
        digest = (row.sweep or row.task_sha256 or "")[:6]
        number.setdefault(root(several[0]), f"v{len(number) + 1} {digest}".strip())
    return [number[root(several[0])] for several in keys]
