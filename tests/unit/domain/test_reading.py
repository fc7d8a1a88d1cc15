"""What pydantic finds wrong with what people wrote is told with the way to it, in words for who wrote it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

import subagents_nb
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.given import Seconds, Text, Whole
from subagents_nb.domain.values.reading import Written, mapping, one_or_many, read, read_rest


class Leg(Written):
    _ALSO: ClassVar[Mapping[str, str]] = {"path": "route"}

    route: Text
    max_hours: Whole | None = Field(default=None, gt=0, le=8)
    by: Literal["foot", "boat", "train"] | None = None


class Trip(Written):
    """A text stands for a list of one leg."""

    legs: Annotated[list[Annotated[Leg, mapping("a leg")]], one_or_many()] = []  # noqa: RUF012
    reads: tuple[str, ...] | Literal[False] = ()
    rest: Seconds | None = None
    tags: dict[Annotated[str, Field(max_length=3)], str] = {}  # noqa: RUF012


def told(written: Any, kind: Any = Trip) -> list[str]:
    found, faults = read(kind, written)
    assert (found is None) == bool(faults)
    return [fault.at("trip") for fault in faults]


def test_keys_may_be_spelt_in_any_way_and_null_says_nothing() -> None:
    found, _ = read(Trip, {"Legs": [{"path": " a ", "maxHours": 3, "by": None}], "rest": "2m"})
    assert found is not None and found.rest == 120
    assert found.legs[0] == Leg(route="a", max_hours=3) and "by" not in found.legs[0].model_fields_set


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"legs": [{}]}, "trip.legs[0].route is missing"),
        ({"legs": {"max-hours": True, "path": "x"}}, "trip.legs.max-hours must be a number, not True"),
        ({"legs": [{"route": "x", "maxHours": 9}]}, "trip.legs[0].maxHours must be at most 8, not 9"),
        ({"legs": [{"route": "x", "by": "bot"}]}, "trip.legs[0].by must be foot, boat or train, not 'bot'"),
        ({"legs": [{"route": "x", "rout": "y"}]}, "trip.legs[0].rout is unknown; did you mean route?"),
        ({"legs": [{"route": 3}]}, "trip.legs[0].route must be text, not 3 (put it in quotes)"),
        ({"legs": [{"route": {"x": None}}]}, "trip.legs[0].route must be text, not {'x': None}; YAML takes braces for "
         "a mapping: put it in quotes"),
        ({"legs": [{"route": "x", "path": "y"}]}, "trip.legs[0]: route and path mean the same: keep one"),
        ({"legs": [3]}, "trip.legs[0] must be a leg, not 3"),
        ({"reads": 5}, "trip.reads must be a list or false, not 5"),
        ({"reads": ["a", 5]}, "trip.reads[1] must be text, not 5 (put it in quotes)"),
        ({"rest": "soon"}, "trip.rest must be seconds, or text such as 90s, 30m or 1h, not 'soon'"),
        ({"zzz": 1}, "trip.zzz is unknown; the keys are legs, reads, rest, tags"),
        ({"tags": {"long": "x"}}, "trip.tags.long: String should have at most 3 characters"),
        (7, "trip must be a mapping, not 7"),
    ],
)  # fmt: skip
def test_a_fault_is_told_once_with_the_way_to_it_as_it_was_written(written: Any, said: str) -> None:
    assert told(written) == [said]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["legs", "Path", "route", "max_hours", "by", "reads", "tags", "_", ""]), inner),
    max_leaves=9,
))  # fmt: skip
def test_whatever_is_written_is_a_value_or_faults(written: Any) -> None:
    for one in (written, {"legs": written}, {"legs": [written], "reads": written}):
        assert told(one) == told(one)


def test_all_faults_are_told_at_once() -> None:
    assert len(told({"legs": [{"max_hours": "x"}, 3], "reads": 4, "zzz": 1})) == 5


def test_what_is_well_is_read_beside_what_is_not_so_that_more_can_be_told_of_it() -> None:
    found, faults = read_rest(Trip, {"Legs": [3], "rest": "2m", "zzz": 1})
    assert found == Trip(rest="2m") and [fault.key for fault in faults] == ["Legs", "zzz"]
    assert read_rest(Leg, {"max_hours": "x"})[0] is None
    assert read_rest(Leg, {"max_hours": "x"}, otherwise={"route": "-"})[0] == Leg(route="-")


def test_a_field_whose_name_is_a_word_of_python_is_called_as_people_write_it() -> None:
    assert told({"as_": 3, "coutn": 2, "task": "x"}, Step) == [
        "trip.as must be text, not 3 (put it in quotes)", "trip.coutn is unknown; did you mean count?",
    ]  # fmt: skip


def test_the_outermost_keys_may_be_called_otherwise_than_the_fields() -> None:
    (fault,) = read(Step, {"shcema": 3}, known=("schema",))[1]
    assert fault.at() == "shcema is unknown; did you mean schema?" and fault.at().path == ("shcema",)


# Who reads documents, which are ours, and what a model or a stored run says.
OF_DOCUMENTS = {
    "accepting_all.py", "archives.py", "artifacts.py", "childlog.py", "codec.py", "collector.py",
    "contracts.py", "left.py", "native.py", "note_receipts.py", "output_claims.py", "output_types.py", "revive.py",
    "unended.py", "verifying.py", "zip_archive.py",
}  # fmt: skip


def test_only_one_file_turns_the_errors_of_pydantic_into_reasons() -> None:
    root = Path(subagents_nb.__file__).parent
    found = {
        path.name
        for path in root.rglob("*.py")
        if "ValidationError" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and "ValidationError" in {one.name for one in node.names}
    }
    assert found == {"reading.py"} | OF_DOCUMENTS
