"""A table is known by what it holds: the hash of its content does not depend on who wrote it, nor on how it lies."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.launching.inputs.content import content_sha256
from subagents_nb.launching.inputs.input_values import gather


def content(value: Any) -> str:
    found = gather({"value": value})[0].record.content_sha256
    assert found is not None
    return found


def of(*values: Any, kind: Any = None, name: str = "a") -> str | None:
    return content_sha256(pyarrow.table({name: pyarrow.array(values, kind)}))


def test_the_versions_that_pandas_notes_are_no_part_of_it() -> None:
    table = pyarrow.Table.from_pandas(pandas.DataFrame({"a": [1, 2], "b": ["x", None]}))
    noted = json.loads(table.schema.metadata[b"pandas"])
    later = noted | {"pandas_version": "99.0", "creator": {"library": "pyarrow", "version": "99.0"}}
    other = table.replace_schema_metadata({b"pandas": json.dumps(later).encode(), b"huggingface": b"{}"})
    one, two = (gather({"value": each})[0].record for each in (table, other))
    assert one.sha256 != two.sha256
    assert one.contract() == two.contract()


def test_what_pandas_keeps_beside_the_columns_is_part_of_it() -> None:
    frame = pandas.DataFrame({"a": [1, 2]})
    renamed = frame.rename_axis("row")
    noted = frame.copy()
    noted.attrs["unit"] = "m"
    whole = {content(one) for one in (frame, frame.set_index(pandas.Index([5, 6])), frame[::-1], renamed, noted)}
    assert len(whole) == 5
    assert content(frame.iloc[1:]) != content(pandas.DataFrame({"a": [2]}))


def test_another_name_type_value_or_gap_is_another_content() -> None:
    found = [
        of("ab", "c"),
        of("a", "bc"),
        of("a", "bc", name="b"),
        of(b"a", b"bc"),
        of(["a"], ["bc"]),
        of("a", None),
        of("a", ""),
        of(1, 2),
        of(1.0, 2.0),
        of(1, None),
        of(1, 0),
        of(float("nan"), 1.0),
        of(None, 1.0),
        of(True, False),
        of(True, None),
        of({"x": 1}, {"x": 2}),
        of({"x": 1}, None),
        of([1], [2, 3]),
        of([1, 2], [3]),
        of([], None, kind=pyarrow.list_(pyarrow.int64())),
        of(None, [], kind=pyarrow.list_(pyarrow.int64())),
    ]
    assert len(set(found)) == len(found)


def test_how_it_lies_in_memory_makes_no_difference() -> None:
    rows = 12
    table = pyarrow.table(
        {
            "number": list(range(rows)),
            "gap": [None if n % 3 else n for n in range(rows)],
            "text": [chr(97 + n) * n for n in range(rows)],
            "flag": [None if n == 5 else n % 2 == 0 for n in range(rows)],
            "list": [None if n % 4 == 0 else [n] * (n % 3) for n in range(rows)],
            "struct": [{"x": n, "y": [str(n)]} for n in range(rows)],
            "fixed": pyarrow.array([[n, n] for n in range(rows)], pyarrow.list_(pyarrow.int8(), 2)),
            "when": pyarrow.array([datetime.datetime(2026, 1, 1 + n) for n in range(rows)]),
            "money": [Decimal(n) for n in range(rows)],
            "map": pyarrow.array([[("k", n)] for n in range(rows)], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        }
    )
    pieces = pyarrow.concat_tables([table.slice(0, 5), table.slice(5)])
    assert content_sha256(pieces) == content_sha256(table)
    part = table.slice(4, 7)
    fresh = pyarrow.Table.from_pylist(part.to_pylist(), schema=part.schema)
    assert content_sha256(part) == content_sha256(fresh)


def test_wide_texts_and_lists_are_the_same_as_narrow_ones() -> None:
    kinds = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
    assert len({of("a", None, "long enough to lie elsewhere", kind=kind) for kind in kinds}) == 1
    assert of([1], kind=pyarrow.list_(pyarrow.int64())) == of([1], kind=pyarrow.large_list(pyarrow.int64()))


def test_what_stands_below_a_gap_and_the_bits_of_a_nan_are_nothing() -> None:
    buffers = [pyarrow.py_buffer(b"\x01"), pyarrow.py_buffer(numpy.array([1, 7]).tobytes())]
    odd = pyarrow.table({"a": pyarrow.Array.from_buffers(pyarrow.int64(), 2, buffers)})
    assert content_sha256(odd) == of(1, None)
    other_nan = numpy.array([0x7FF8000000000001], dtype="u8").view("f8")
    assert content_sha256(pyarrow.table({"a": other_nan})) == of(float("nan"))


@pytest.mark.parametrize(
    "frame",
    [
        polars.DataFrame({"a": [1, None], "b": ["x", None], "c": [[1], None], "d": [datetime.date(2026, 1, 1), None]}),
        polars.DataFrame({"a": ["u", "v"]}, schema={"a": polars.Enum(["u", "v"])}),
    ],
)
def test_a_polars_frame_is_known_by_its_content_in_pieces_too(frame: polars.DataFrame) -> None:
    pieces = polars.concat([frame[:1], frame[1:]], rechunk=False)
    assert content(pieces) == content(frame)
    assert content(frame) != content(frame[::-1])


def test_categories_of_polars_are_known_by_their_words() -> None:
    polars.Series(["other", "words", "before"], dtype=polars.Categorical)
    one = polars.DataFrame({"a": ["u", "v"]}, schema={"a": polars.Categorical})
    assert content(one) == content(one.clone())
    assert content(one) != content(polars.DataFrame({"a": ["u", "v"]}))


def test_other_values_and_records_of_earlier_versions_are_known_by_their_files() -> None:
    plain = gather({"value": {"a": 1}})[0].record
    assert plain.content_sha256 is None
    assert plain.contract()["sha256"] == plain.sha256
    table = gather({"value": pandas.DataFrame({"a": [1]})})[0].record
    earlier = InputRecord.model_validate(table.model_dump(exclude={"content_sha256"}))
    assert earlier.contract()["sha256"] == table.sha256
    assert table.by_file() == earlier
