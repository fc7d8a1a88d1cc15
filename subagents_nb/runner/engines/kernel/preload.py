"""What runs inside the agent's kernel before its first cell: the inputs under their names, and tables kept when shown.

Nothing here is trusted by the runner: it checks what it is told about files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from subagents_nb.runner.engines.kernel.noting import note_writes

TABLE_MIME = "application/vnd.subagents-nb.table+json"
_LARGEST_TABLE = 50_000_000
_MOST_TABLES = 50
_TABLES = (
    ("pandas", "DataFrame"),
    ("pandas.core.frame", "DataFrame"),
    ("polars.dataframe.frame", "DataFrame"),
    ("pyarrow.lib", "Table"),
)


def prepare(shell: Any, folder: str, records: str, tables: str, written: str, root: str, folders: str) -> None:
    """Load the inputs below `folder` into the user's names and write shown tables into `tables`; say what failed.

    What the kernel writes below `root` from then on is noted in the file `written`; `folders` are those there.
    """
    for record in json.loads(records):
        try:
            shell.user_ns[record["name"]] = _load(Path(folder) / Path(record["file"]).name, record)
        except Exception as error:  # noqa: BLE001 - one input that can't be loaded must not take the others along
            print(f"The input {record['name']} could not be loaded: {error}")  # noqa: T201
    keeper = _Tables(Path(tables))
    for module, name in _TABLES:
        shell.display_formatter.mimebundle_formatter.for_type_by_name(module, name, keeper.keep)
    sys.meta_path.append(_OfWorkspace(root))
    note_events = note_writes(written, root, json.loads(folders))
    shell.events.register("post_execute", note_events)


class _OfWorkspace:
    """Finds modules of the workspace that nothing else is called like: none stands in for one that is installed.

    It asks for the file itself. A place on `sys.path` is listed for each module that is missing, and whoever lists a
    folder depends on all that is in it.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return where a module of the top level is."""
        if path is not None or not name.isidentifier():
            return None
        package, module = self._root / name / "__init__.py", self._root / f"{name}.py"
        if package.is_file():
            return importlib.util.spec_from_file_location(
                name, package, submodule_search_locations=[str(package.parent)]
            )
        return importlib.util.spec_from_file_location(name, module) if module.is_file() else None


def _load(path: Path, record: dict[str, Any]) -> Any:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != record["sha256"]:
        raise ValueError("its file is not what was put in")
    match record["kind"]:
        case "table":
            return _table(path, record["type"])
        case "array":
            import numpy

            return numpy.load(path, allow_pickle=False)
        case "text":
            return data.decode("utf-8")
        case "json":
            return json.loads(data)
        case "figure":
            return _figure(path)
        case _:
            return data


def _table(path: Path, kind: str) -> Any:
    """Load it with the library it came from, else with one that is there."""
    package, _, name = kind.partition(".")
    order = dict.fromkeys([package, "pandas", "polars", "pyarrow"])
    reader = next((one for one in order if one in _READERS and importlib.util.find_spec(one) is not None), None)
    if reader is None:
        raise ImportError("no library that reads Parquet is installed")
    table = _READERS[reader](path)
    if name != "Series":
        return table
    return table.iloc[:, 0] if reader == "pandas" else table.to_series() if reader == "polars" else table


def _pandas(path: Path) -> Any:
    import pandas

    return pandas.read_parquet(path)


def _polars(path: Path) -> Any:
    import polars

    return polars.read_parquet(path)


def _pyarrow(path: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path)


_READERS = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}


def _figure(path: Path) -> Any:
    if importlib.util.find_spec("PIL") is None:
        return path.read_bytes()
    import PIL.Image

    with PIL.Image.open(path) as picture:
        picture.load()
        return picture


class _Tables:
    """Write each table that is shown as Parquet and name the file beside what is shown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def keep(self, table: Any) -> dict[str, Any]:
        """Return the file's name as a MIME bundle; nothing where the table can't be kept."""
        if self._count >= _MOST_TABLES or _size(table) > 4 * _LARGEST_TABLE:
            return {}
        path = self._folder / f"{self._count + 1}.parquet"
        try:
            _write(table, path)
            if path.stat().st_size > _LARGEST_TABLE:
                raise ValueError("too large")
        except Exception:  # noqa: BLE001 - to show a table is worth more than to keep it
            path.unlink(missing_ok=True)
            return {}
        self._count += 1
        return {TABLE_MIME: {"file": path.name, "shape": [int(n) for n in table.shape]}}


def _size(table: Any) -> int:
    for name in ("nbytes", "estimated_size", "memory_usage"):
        found = getattr(table, name, None)
        if found is not None:
            size = found() if callable(found) else found
            return int(size.sum()) if hasattr(size, "sum") else int(size)
    return 0


def _write(table: Any, path: Path) -> None:
    if hasattr(table, "to_parquet"):
        table.to_parquet(path)
    elif hasattr(table, "write_parquet"):
        table.write_parquet(path)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
