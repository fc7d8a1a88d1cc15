"""A grid of parameters and its combinations, in an order that the person who wrote it can foresee."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from subagents_nb.domain.plans.experiments import Case, ParamValue
from subagents_nb.domain.plans.flow import Chain, Expand, Parallel, Step
from subagents_nb.domain.values.base import Value, sha256_text, stable_json
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line

MAX_CELLS = 10_000
CASE = "case"  # the axis of cases
_FIELD = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_CASE_FIELD = re.compile(r"\{case\.([A-Za-z_]\w*)\}")
_EITHER = re.compile(rf"{_FIELD.pattern}|{_CASE_FIELD.pattern}")


class Axis(Value):
    """One parameter and the values it takes, each with the word by which it is known later."""

    name: str
    values: tuple[tuple[ParamValue, Any], ...]


class Combination(Value):
    """One combination of the grid, one repetition of it. `given` holds what is handed on, `params` what is written."""

    place: int
    repeat: int
    params: dict[str, ParamValue]
    given: dict[str, Any]

    @property
    def key(self) -> str:
        """Return what tells it from the others of its sweep, wherever it stands in the grid."""
        return key_of(self.params, self.repeat)


def key_of(params: Mapping[str, ParamValue], repeat: int) -> str:
    """Return what tells a run from the others of its sweep. A whole float is the integer of its value, as in a task."""
    plain = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in params.items()}
    return stable_json([plain, repeat])


def axes_of(grid: Mapping[str, Any], reasons: Reasons) -> tuple[Axis, ...]:
    """Return the grid's axes as they were given, the last one fastest; what is wrong with it goes to the reasons.

    An axis is a list of single values, or a mapping from words to what they stand for, for values that are no text or
    number, such as schemas.
    """
    if not isinstance(grid, Mapping) or not grid:
        reasons.append('the grid is a mapping of names to lists, such as {"model": ["a", "b"]}')
        return ()
    axes = []
    for name, values in grid.items():
        if not isinstance(name, str) or not name.isidentifier():
            reasons.append(f"{one_line(repr(name), 60)} can't be swept: it is an option of launch, or a {{{{name}}}}")
        elif isinstance(values, Mapping):
            axes.append(Axis(name=name, values=tuple((str(word), value) for word, value in values.items())))
        elif isinstance(values, str | bytes) or not isinstance(values, Sequence):
            reasons.append(f"the grid's {name} is a list of values, not {one_line(repr(values), 60)}")
        else:
            axes.append(Axis.model_construct(name=name, values=tuple((value, value) for value in values)))
    for axis in axes:
        reasons.extend(_faults(axis))
    reasons.extend(too_many(axes))
    return tuple(axes)


def too_many(axes: Sequence[Axis]) -> Iterator[str]:
    """Yield the reason if the axes have more combinations than one sweep may."""
    size = math.prod(len(axis.values) for axis in axes)
    if size > MAX_CELLS:
        yield f"the grid has {size:,} combinations, more than {MAX_CELLS:,}"


def case_axis(cases: Sequence[Case]) -> Axis:
    """Return the axis of cases, each known by its id."""
    return Axis.model_construct(name=CASE, values=tuple((case.id, case) for case in cases))


def _faults(axis: Axis) -> Iterator[str]:
    words = [word for word, _ in axis.values]
    if not words:
        yield f"the grid's {axis.name} has no values"
    for word in words:
        if word is not None and not isinstance(word, str | int | float | bool):
            yield (
                f"the grid's {axis.name} holds a {type(word).__name__}; "
                f'give a mapping instead, from a word to it: {{"first": ...}}'
            )
        elif isinstance(word, float) and not math.isfinite(word):
            yield f"the grid's {axis.name} holds {word}"
    if len({json.dumps(word, default=str) for word in words}) < len(words):
        yield f"the grid's {axis.name} holds a value twice"


def combinations(axes: Sequence[Axis], repeat: int) -> list[Combination]:
    """Return all combinations in order: the first axis slowest, the last fastest, repetitions next to each other."""
    cells = []
    for place, values in enumerate(itertools.product(*(axis.values for axis in axes))):
        params = {axis.name: word for axis, (word, _) in zip(axes, values, strict=True)}
        given = {axis.name: value for axis, (_, value) in zip(axes, values, strict=True)}
        cells += [Combination(place=place, repeat=number, params=params, given=given) for number in range(repeat)]
    return cells


def fields_of(what: Chain | str) -> frozenset[str]:
    """Return the names that stand as {{name}} in a task, or in any task of a chain."""
    return frozenset(name for text in _texts(what) for name in _FIELD.findall(text))


def _texts(what: Chain | str) -> list[str]:
    return [what] if isinstance(what, str) else [what.task or "", *(step.task or "" for step in _steps(what))]


def case_fields(what: Chain | str) -> frozenset[str]:
    """Return the names x that stand as {case.x} in a task, or in any task of a chain."""
    return frozenset(name for text in _texts(what) for name in _CASE_FIELD.findall(text))


def filled_text(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with {{name}} replaced by the values that have one of the names; others stay as they stand.

    Of a case {case.x} is what its inputs have under x. What was put in is not looked at again.
    """
    case = values.get(CASE)
    inputs = case.inputs if isinstance(case, Case) else {}

    def value(match: re.Match[str]) -> str:
        field, asked = match[1], match[2]
        if asked is not None:
            return case_text(inputs[asked]) if asked in inputs else match[0]
        return str(values[field]) if field in values else match[0]

    return _EITHER.sub(value, text)


def case_text(value: Any) -> str:
    """Return what a case says as it stands in a task: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def filled(flow: Chain, values: Mapping[str, Any]) -> Chain:
    """Return a chain with {{name}} replaced in all of its tasks."""

    def step(one: Step) -> Step:
        return one if one.task is None else one.model_copy(update={"task": filled_text(one.task, values)})

    items: list[Any] = []
    for item in flow.items:
        if isinstance(item, Step):
            items.append(step(item))
        elif isinstance(item, Parallel):
            items.append(item.model_copy(update={"steps": tuple(map(step, item.steps))}))
        elif isinstance(item, Expand):
            items.append(item.model_copy(update={"each": step(item.each)}))
        else:
            items.append(item)
    task = None if flow.task is None else filled_text(flow.task, values)
    return flow.model_copy(update={"items": tuple(items), "task": task})


def _steps(flow: Chain) -> Iterator[Step]:
    for item in flow.items:
        if isinstance(item, Step):
            yield item
        elif isinstance(item, Parallel):
            yield from item.steps
        elif isinstance(item, Expand):
            yield item.each


def sweep_digest(what: Chain | str | None, task: str | None, axes: Sequence[Axis], cwd: str | None = None) -> str:
    """Return the digest of what is swept: the agent or chain, its task, and which parameters vary.

    With `cwd` it is the one of earlier versions, which bound the place too: a sweep carried to another was not found.
    """
    shown = what.model_dump(mode="json") if isinstance(what, Chain) else what
    where = [] if cwd is None else [cwd]
    return sha256_text(stable_json([shown, task, *where, sorted(axis.name for axis in axes)]))


def parsed(text: str, kind: Callable[[str], Any] | None = None) -> Any:
    """Return a value as it is written on a line: by the option's own type, else as a number, true, false or text.

    Raises:
        ValueError: it is none of the option's type.
    """
    word = text.strip()
    if kind is not None:
        return kind(word)
    if word in ("true", "false"):
        return word == "true"
    for number in (int, float):
        try:
            parsed_number = number(word)
        except ValueError:
            continue
        if math.isfinite(parsed_number) and (word.lstrip("-").isdecimal() or number is float):
            return parsed_number
    return word
