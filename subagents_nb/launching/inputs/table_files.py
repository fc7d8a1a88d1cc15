"""Tables of pandas, polars and arrow, as Parquet."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from subagents_nb.domain.plans.inputs import HEAD_ROWS, SHOWN_COLUMNS, describe_table
from subagents_nb.launching.inputs.content import about_pandas, content_sha256
from subagents_nb.launching.inputs.kind import Bounded, CantKeep, Kept, TooLarge, is_a, loaded, type_name
from subagents_nb.plain_text import shortened

MEDIA_TYPE = "application/vnd.apache.parquet"
_NAMED = 5


def table(value: Any, limit: int) -> Kept | None:
    """Return the table as Parquet, or None if the value is none.

    Raises:
        CantKeep: Parquet has no place for what it holds.
        TooLarge: it takes more than `limit` bytes.
    """
    if is_a(value, "pandas", "DataFrame", "Series"):
        return _pandas(value, limit)
    if is_a(value, "polars", "DataFrame", "Series"):
        return _polars(value, limit)
    if is_a(value, "polars", "LazyFrame"):
        raise CantKeep("a LazyFrame has no rows yet; pass what its .collect() returns")
    if is_a(value, "pyarrow", "Table", "RecordBatch"):
        return _arrow(value, limit)
    return None


def _pandas(value: Any, limit: int) -> Kept:
    try:
        import pyarrow
    except ImportError:
        raise CantKeep("a pandas table is stored as Parquet, which needs pyarrow: pip install pyarrow") from None
    pandas: Any = loaded("pandas")
    frame = value
    if type(value) is pandas.Series:
        frame = value.to_frame(name="value" if value.name is None else value.name)
    _check_names(list(frame.columns))
    with warnings.catch_warnings():
        # What pandas thinks of the user's columns is no concern of a launch.
        warnings.simplefilter("ignore")
        try:
            converted = pyarrow.Table.from_pandas(frame, nthreads=1)  # a pool is slower for many columns
        except Exception as error:
            raise CantKeep(_unfit_columns(frame, pyarrow, error)) from error
    types = [str(kind) for kind in frame.dtypes.iloc[:SHOWN_COLUMNS]]
    names = [str(name) for name in frame.columns[:SHOWN_COLUMNS]]
    text, content = _describe_arrow(converted, names, types, frame.shape), (converted, about_pandas(converted))
    return _kept(value, value.shape, _parquet(converted, limit), text, *content)


def _polars(value: Any, limit: int) -> Kept:
    polars: Any = loaded("polars")
    frame = value.to_frame() if type(value) is polars.Series else value
    unfit = [name for name, kind in frame.schema.items() if kind == polars.Object]
    if unfit:
        raise CantKeep(f"{_columns(unfit)} of Python objects; make text or numbers of them")
    sink = Bounded(limit)
    try:
        frame.write_parquet(sink, compression="snappy", use_pyarrow=False)
    except Exception as error:
        if sink.full:
            raise TooLarge from error
        raise CantKeep(f"polars can't write it as Parquet ({_one_line(error)})") from error
    names = frame.columns[:SHOWN_COLUMNS]
    head = frame.select(names).head(HEAD_ROWS)
    text = describe_table(names, [str(head[name].dtype) for name in names], head.rows(), frame.shape)
    content = _from_polars(polars, frame)
    return _kept(value, value.shape, sink.getvalue(), text, *content)


def _from_polars(polars: Any, frame: Any) -> tuple[Any, Any]:
    """Return the frame as arrow has it, and its own types; nothing where there is no pyarrow."""
    types = [str(kind) for kind in frame.schema.values()]
    try:
        import pyarrow  # noqa: F401

        # The numbers of categories come from a table that the whole process shares.
        plain = frame.with_columns(polars.col(polars.Categorical).cast(polars.String))
        return plain.to_arrow(compat_level=polars.CompatLevel.oldest()), types
    except Exception:  # noqa: BLE001 - whatever is amiss, the bytes of the file say what the table holds
        return None, None


def _arrow(value: Any, limit: int) -> Kept:
    pyarrow: Any = loaded("pyarrow")
    table = pyarrow.Table.from_batches([value]) if type(value) is pyarrow.RecordBatch else value
    _check_names(table.column_names)
    names = table.column_names[:SHOWN_COLUMNS]
    types = [str(field.type) for field in list(table.schema)[:SHOWN_COLUMNS]]
    shape = (table.num_rows, table.num_columns)
    content = (table, about_pandas(table))
    return _kept(value, shape, _parquet(table, limit), _describe_arrow(table, names, types, shape), *content)


def _parquet(converted: Any, limit: int) -> bytes:
    import pyarrow
    import pyarrow.parquet

    sink = Bounded(limit)
    try:
        pyarrow.parquet.write_table(converted, sink, compression="snappy", version="2.6")
    except TooLarge:
        raise
    except Exception as error:
        if sink.full:
            raise TooLarge from error
        raise CantKeep(f"it can't be written as Parquet ({_one_line(error)})") from error
    return sink.getvalue()


def _describe_arrow(converted: Any, names: list[str], types: list[str], shape: tuple[int, ...]) -> str:
    head = converted.slice(0, HEAD_ROWS)
    columns = [head.column(place).to_pylist() for place in range(len(names))]
    return describe_table(names, types, list(zip(*columns, strict=True)), shape)


def _kept(
    value: Any, shape: tuple[int, ...], data: bytes, description: str, held: Any = None, about: Any = None
) -> Kept:
    return Kept(
        kind="table",
        type=type_name(value),
        shape=tuple(int(n) for n in shape),
        data=data,
        extension=".parquet",
        media_type=MEDIA_TYPE,
        description=description,
        content_sha256=None if held is None else content_sha256(held, about),
    )


def _check_names(names: list[Any]) -> None:
    """Refuse columns that would come back under another name, or not be told apart."""
    numbered = bool(names) and all(type(name) is int for name in names)
    odd = [] if numbered else [name for name in names if not isinstance(name, str)]
    if odd:
        raise CantKeep(
            f"{_columns(odd)} whose name is no text; rename them, as in df.columns = [str(name) for name in df.columns]"
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise CantKeep(f"{_columns(twice)} more than once; give each a name of its own")


def _unfit_columns(frame: Any, pyarrow: Any, error: Exception) -> str:
    """Name the columns that arrow has no type for."""
    unfit = []
    for place, name in enumerate(frame.columns):
        try:
            pyarrow.array(frame.iloc[:, place], from_pandas=True)
        except Exception:  # noqa: BLE001 - the value's own code runs here, and any fault of it means the same
            unfit.append(name)
            if len(unfit) > _NAMED:
                break
    if not unfit:
        return f"it can't be written as Parquet ({_one_line(error)})"
    what = _columns(unfit)
    return f"{what} of mixed or unknown objects; make one type of each, as in df[name] = df[name].astype(str)"


def _columns(names: list[Any]) -> str:
    shown = ", ".join(_short(name) for name in names[:_NAMED])
    more = ", …" if len(names) > _NAMED else ""
    return f"it has the column{'' if len(names) == 1 else 's'} {shown}{more}"


def _short(name: Any) -> str:
    return shortened(ascii(name) if not isinstance(name, str) else repr(name), 40)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
