"""What a table holds, as one hash: of names, types and values, whoever wrote it and with which version.

Parquet bytes carry the versions of their writers, so that an update of pandas or pyarrow would make every table look
new. Not told apart: how large the offsets of texts and lists are, in how many pieces a column lies, what stands below
a missing value, and the bits of a NaN.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from typing import Any

_SIZES = re.compile(r"\b(?:large_)?(string|binary|list)(?:_view)?\b")


def content_sha256(table: Any, about: Any = None) -> str | None:
    """Return the SHA-256 over what an arrow table holds; `about` is plain data that belongs to it as well.

    None: this version of arrow can't do what is needed for one of its types.
    """
    import pyarrow

    digest = hashlib.sha256()
    schema = [[name, _type_text(kind)] for name, kind in zip(table.schema.names, table.schema.types, strict=True)]
    digest.update(json.dumps([about, schema, table.num_rows], sort_keys=True).encode())
    try:
        for column in table.columns:
            _feed(digest, column.combine_chunks())
    except pyarrow.ArrowException:
        return None
    return digest.hexdigest()


def about_pandas(table: Any) -> Any:
    """Return what pandas keeps of a frame outside of its columns, without the versions that it notes there too."""
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        noted = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
        columns = [[one.get("field_name"), _pandas_type(one)] for one in noted.get("columns", ())]
        names = [one.get("name") for one in noted.get("column_indexes", ())]
        return [noted.get("index_columns"), names, columns, noted.get("attributes")]
    return None


def _pandas_type(column: Any) -> list[Any]:
    # Texts were objects once and are a type of their own in later versions.
    text = column.get("pandas_type") in ("unicode", "string", "empty")
    return ["text"] if text else [column.get("pandas_type"), column.get("numpy_type")]


def _type_text(kind: Any) -> str:
    return _SIZES.sub(r"\1", str(kind))


def _feed(digest: Any, array: Any) -> None:
    """Take in one array: its length, where values are missing, its values."""
    import pyarrow
    import pyarrow.compute as compute

    kinds, kind = pyarrow.types, array.type
    if isinstance(array, pyarrow.ExtensionArray):
        _feed(digest, array.storage)
        return
    digest.update(f"{len(array)},{array.null_count};".encode())
    if kinds.is_null(kind):
        return
    if array.null_count:
        _feed_values(digest, array.is_valid().cast("uint8"))
    if kinds.is_dictionary(kind):
        _feed(digest, array.dictionary)
        _feed(digest, array.indices.cast("int64"))
    elif kinds.is_boolean(kind):
        _feed_values(digest, array.fill_null(False).cast("uint8"))
    elif _is_text(kinds, kind):
        _feed_texts(digest, array)
    elif kinds.is_struct(kind):
        for child in array.flatten():
            _feed(digest, child)
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        _feed_values(digest, compute.list_value_length(array).cast("int64").fill_null(0))
        _feed(digest, array.flatten())
    elif kinds.is_primitive(kind) and kind.bit_width in (8, 16, 32, 64):
        _feed_numbers(digest, array)
    else:
        digest.update(repr(array.to_pylist()).encode("utf-8", "replace"))


def _is_text(kinds: Any, kind: Any) -> bool:
    names = ("is_string", "is_large_string", "is_binary", "is_large_binary", "is_string_view", "is_binary_view")
    return any(test(kind) for name in names if (test := getattr(kinds, name, None)) is not None)


def _feed_texts(digest: Any, array: Any) -> None:
    import pyarrow
    import pyarrow.compute as compute

    if not pyarrow.types.is_large_binary(array.type):
        array = array.cast(pyarrow.large_binary())
    filled = array.fill_null(b"") if array.null_count else array
    _feed_values(digest, compute.binary_length(filled).cast("int64"))
    _, offsets, data = filled.buffers()
    if data is not None and len(filled):
        places = memoryview(offsets).cast("q")
        digest.update(memoryview(data)[places[filled.offset] : places[filled.offset + len(filled)]])


def _feed_numbers(digest: Any, array: Any) -> None:
    import pyarrow
    import pyarrow.compute as compute

    kinds = pyarrow.types
    if kinds.is_float16(array.type):
        array = array.cast("float32")
    if kinds.is_floating(array.type):
        nan = pyarrow.scalar(float("nan"), array.type)
        array = compute.if_else(compute.is_nan(array), nan, array)
    number = array.view(f"int{array.type.bit_width}")
    _feed_values(digest, number.fill_null(0) if number.null_count else number)


def _feed_values(digest: Any, array: Any) -> None:
    """Take in the bytes of an array of numbers in which none is missing."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if data is not None and len(array):
        digest.update(memoryview(data)[array.offset * width : (array.offset + len(array)) * width])
