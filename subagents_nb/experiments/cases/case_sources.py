"""Rows of cases, from a table, a file, a list or another tool's dataset. No package is imported for it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.store.files.opener import NotPlain, read_plain

MAX_BYTES = 64 * 1024 * 1024
Row = dict[str, Any]


def rows_of(source: Any) -> list[Row]:
    """Return one mapping for each case; of datasets with the names `id`, `input`, `expected` and `metadata`.

    Raises:
        RequestError: it is nothing of which cases can be read.
    """
    if isinstance(source, str | os.PathLike):
        return list(_file_rows(Path(source)))
    if hasattr(source, "to_dicts"):  # polars
        return list(source.to_dicts())
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # pandas
        return [dict(row) for row in source.to_dict("records")]
    if hasattr(source, "cases"):  # pydantic-evals
        return [_evals(one) for one in source.cases]
    samples = getattr(source, "samples", source)  # Inspect
    if isinstance(samples, Sequence) and samples and all(hasattr(one, "target") for one in samples):
        return [_inspect(one) for one in samples]
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
        return [dict(row) for row in source]
    raise RequestError(
        "Cases are a DataFrame, a path of a .jsonl, .json or .csv file, a list of mappings, or a dataset of "
        f"pydantic-evals or Inspect, not {one_line(repr(source), 80)}."
    )


def _file_rows(path: Path) -> Iterator[Row]:
    shown = one_line(path.name, 80)
    try:
        raw = read_plain(path, MAX_BYTES)
        content = raw.decode("utf-8-sig")
    except (OSError, NotPlain, UnicodeDecodeError) as error:
        raise RequestError(f"The cases of {shown} can't be read: {error}.") from error
    if len(raw) > MAX_BYTES:
        raise RequestError(f"{shown} has more than {MAX_BYTES // 1024**2} MB.")
    kind = path.suffix.lower()
    if kind == ".csv":
        yield from (dict(row) for row in csv.DictReader(io.StringIO(content, newline="")))
        return
    if kind not in (".jsonl", ".ndjson", ".json"):
        raise RequestError(f"Cases are read of .jsonl, .json and .csv files, not of {shown}.")
    texts = [content] if kind == ".json" else [line for line in content.splitlines() if line.strip()]
    for number, text in enumerate(texts, 1):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise RequestError(f"Line {number} of {shown} is no JSON: {error}.") from error
        for row in found if isinstance(found, list) else [found]:
            if not isinstance(row, Mapping):
                raise RequestError(f"Line {number} of {shown} holds no mapping.")
            yield dict(row)


def _evals(one: Any) -> Row:
    inputs = plain_value(one.inputs)
    row: Row = dict(inputs) if isinstance(inputs, dict) else {"input": inputs}
    name = getattr(one, "name", None)
    row |= {"expected": plain_value(one.expected_output), "metadata": plain_value(getattr(one, "metadata", None)) or {}}
    return row if name is None else {"id": name, **row}


def _inspect(one: Any) -> Row:
    given = one.input
    text = given if isinstance(given, str) else "\n\n".join(str(getattr(part, "text", part)) for part in given)
    row: Row = {"input": text, "expected": plain_value(one.target), "metadata": plain_value(one.metadata) or {}}
    if getattr(one, "choices", None):
        row["choices"] = list(one.choices)
    return row if one.id is None else {"id": str(one.id), **row}


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it; what a table lacks (NaN, NaT) is None.

    Raises:
        RequestError: JSON has none for it.
    """
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise RequestError(f"A case holds no {value}: JSON has no such number.")
    if isinstance(value, Mapping):
        return {str(name): plain_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat() if value == value else None
    raise RequestError(f"A case holds texts, numbers, true, false, lists and mappings, not a {type(value).__name__}.")
