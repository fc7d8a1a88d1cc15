"""Make the steps of a fan-out from its template and the items that were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subagents_nb.domain.plans.fanout import FanOutProblem, Item, items_of, slug
from subagents_nb.domain.plans.plan import FanOutItem, StepPlan


@dataclass(frozen=True, slots=True)
class FannedOut:
    """The items, and one step for each."""

    items: tuple[Item, ...]
    steps: tuple[StepPlan, ...]


def fan_out(item: FanOutItem, source: Any, *, first_index: int, place: int) -> FannedOut:
    """Return the steps of a fan-out, numbered from `first_index`; `place` is the place of its stage, from 1.

    Raises:
        FanOutProblem: the source can't be expanded.
    """
    items = items_of(source, item.path, key=item.key, max_items=item.max_items)
    if not items and item.on_empty == "fail":
        raise FanOutProblem("there are no items, and on_empty says that this is a failure")
    steps = tuple(
        item.template.model_copy(
            update={
                "index": first_index + one.index,
                "title": one.key,
                "output": _own_output(item.template, one, place),
            }
        )
        for one in items
    )
    return FannedOut(items, steps)


def _own_output(template: StepPlan, one: Item, place: int) -> Any:
    if template.output is None or template.worktree is not None:
        return template.output
    folder = f"dynamic-{place}/{one.index}-{slug(one.key)}"
    return template.output.model_copy(update={"path": f"{folder}/{template.output.path}"})
