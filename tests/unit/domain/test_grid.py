"""Grids: their order, their faults, and what tells one cell from another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.domain.plans.flow import Chain, Expand, Parallel, Source, Step
from subagents_nb.domain.plans.grid import (
    axes_of,
    combinations,
    fields_of,
    filled,
    filled_text,
    key_of,
    parsed,
    sweep_digest,
)


def cells(grid: object, repeat: int = 1) -> list[tuple[object, ...]]:
    reasons: list[str] = []
    found = combinations(axes_of(grid, reasons), repeat)  # type: ignore[arg-type]
    assert not reasons
    return [(*cell.params.values(), cell.repeat) for cell in found]


def faults(grid: object) -> str:
    reasons: list[str] = []
    axes_of(grid, reasons)  # type: ignore[arg-type]
    return "; ".join(reasons)


def test_the_last_name_changes_fastest_and_repetitions_stand_together() -> None:
    assert cells({"model": ["b", "a"], "heat": [0, 1]}, repeat=2) == [
        ("b", 0, 0), ("b", 0, 1), ("b", 1, 0), ("b", 1, 1), ("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("a", 1, 1),
    ]  # fmt: skip


def test_a_mapping_gives_each_value_a_word() -> None:
    reasons: list[str] = []
    (first, second) = combinations(axes_of({"schema": {"short": int, "long": str}}, reasons), 1)

    assert first.params == {"schema": "short"} and first.given == {"schema": int}
    assert second.params == {"schema": "long"} and not reasons


@pytest.mark.parametrize(
    ("grid", "fault"),
    [
        ({}, "a mapping of names to lists"),
        ([1], "a mapping of names to lists"),
        ({"model": []}, "has no values"),
        ({"model": "a,b"}, "is a list of values"),
        ({"model": ["a", "a"]}, "holds a value twice"),
        ({"heat": [float("nan")]}, "holds nan"),
        ({"schema": [dict]}, "give a mapping instead"),
        ({"<img onerror>": [1]}, "can't be swept"),
        ({"a": list(range(200)), "b": list(range(200))}, "more than 10,000"),
    ],
)
def test_a_grid_that_makes_no_sense_is_told(grid: object, fault: str) -> None:
    assert fault in faults(grid)


def test_a_cell_is_the_same_wherever_it_stands_and_however_its_number_is_written() -> None:
    assert key_of({"a": 1.0, "b": "x"}, 0) == key_of({"b": "x", "a": 1}, 0)
    assert key_of({"a": True}, 0) != key_of({"a": 1}, 0) != key_of({"a": "1"}, 0)
    assert key_of({"a": 1}, 0) != key_of({"a": 1}, 1)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3))
def test_each_cell_has_a_key_of_its_own(sizes: list[int], repeat: int) -> None:
    grid = {f"p{n}": list(range(size)) for n, size in enumerate(sizes)}
    found = combinations(axes_of(grid, []), repeat)

    assert len({cell.key for cell in found}) == len(found)


def test_a_sweep_keeps_its_digest_when_its_grid_grows() -> None:
    def digest(grid: dict[str, list[str]], task: str = "say {{x}}") -> str:
        return sweep_digest("scout", task, axes_of(grid, []))

    assert digest({"x": ["a"]}) == digest({"x": ["a", "b"]})
    assert digest({"x": ["a"]}) != digest({"y": ["a"]}) and digest({"x": ["a"]}) != digest({"x": ["a"]}, "tell {{x}}")


def test_names_in_double_braces_are_filled_in_every_task_of_a_chain_and_others_stay() -> None:
    flow = Chain(
        items=(
            Step(task="find {{x}} {task}"),
            Parallel(steps=(Step(task="{{ y }}"), Step())),
            Expand(from_=Source(output="o"), each=Step(task="{{x}} {item}")),
        ),
        task="all of {{x}}",
    )

    assert fields_of(flow) == {"x", "y"}
    whole = filled(flow, {"x": "<img onerror>"})
    assert whole.task == "all of <img onerror>"
    assert [getattr(item, "task", None) for item in whole.items] == ["find <img onerror> {task}", None, None]
    assert whole.items[1].steps[0].task == "{{ y }}" and whole.items[2].each.task == "<img onerror> {item}"  # type: ignore[union-attr]
    assert filled_text("{{ x }}{{z}}", {"x": "{{z}}", "z": 1}) == "{{z}}1"  # what was filled in is not filled again


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2", -2),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        (" a b ", "a b"),
        ("nan", "nan"),
        ("1_0", 10.0),
    ],
)
def test_values_on_a_line_are_what_they_look_like(text: str, value: object) -> None:
    found = parsed(text)
    assert found == value and type(found) is type(value)


def test_an_options_own_type_decides() -> None:
    assert parsed("1", str) == "1" and parsed("1", float) == 1.0
    with pytest.raises(ValueError):
        parsed("hot", float)
