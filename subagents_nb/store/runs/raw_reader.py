"""Read many runs for tables: their documents as plain data, unvalidated. For a decision about a run, use the reader."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import from_json

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, MAX_DOCUMENT_BYTES
from subagents_nb.store.files.opener import FOLDER, READ
from subagents_nb.store.layout import StoreHome

_BY_HANDLE = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # else by paths
_AT_ONCE = 32 * 1024


def read_raw(
    home: StoreHome, run_id: str, names: Sequence[str], *, having: bytes | None = None
) -> dict[str, dict[str, Any] | None]:
    """Return documents of a run by their names, such as `plan.json`; None for one that is no object or not there.

    With `having`, a document that does not hold these bytes counts as not there. Scores are read by `scores`: a
    mapping of file names to objects.
    """
    documents: dict[str, dict[str, Any] | None] = dict.fromkeys(names)
    if not is_run_id(run_id):
        return documents
    folder = f"{home.root}{os.sep}runs{os.sep}{run_id}"
    if not _BY_HANDLE:
        return {
            name: _scores_at(folder) if name == "scores" else _read(f"{folder}{os.sep}{name}", having) for name in names
        }
    try:
        handle = os.open(folder, FOLDER)
    except OSError:
        return documents
    try:
        for name in names:
            documents[name] = _scores(handle) if name == "scores" else _read(name, having, handle)
    finally:
        os.close(handle)
    return documents


def read_raw_ids(home: StoreHome) -> Iterator[str]:
    """Yield the ids of all runs, in no order. A missing store has none."""
    with contextlib.suppress(OSError), os.scandir(home.runs) as entries:
        for entry in entries:
            if is_run_id(entry.name):
                yield entry.name


def read_raw_messages(home: StoreHome, run_id: str, step: int) -> list[dict[str, Any]]:
    """Return what the model of a step was told and said, as its session holds it; nothing if there is none."""
    try:
        value = from_json(DISK.read(home.run(run_id).step(step) / "session.json"))
    except (Unreadable, ValueError):
        return []
    return [message for message in value if isinstance(message, dict)] if isinstance(value, list) else []


def _scores(folder: int) -> dict[str, Any] | None:
    try:
        handle = os.open("scores", FOLDER, dir_fd=folder)
    except OSError:
        return None
    try:
        names = _documents(os.listdir(handle))
        return {name: document for name in names if (document := _read(name, None, handle)) is not None}
    except OSError:
        return None
    finally:
        os.close(handle)


def _scores_at(folder: str) -> dict[str, Any] | None:
    place = f"{folder}{os.sep}scores"
    try:
        names = _documents(os.listdir(place))
    except OSError:
        return None
    return {name: scores for name in names if (scores := _read(f"{place}{os.sep}{name}", None)) is not None}


def _documents(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.endswith(".json") and name[:1] != "."]


def _read(name: str, having: bytes | None, folder: int | None = None) -> dict[str, Any] | None:
    try:
        handle = os.open(name, READ, dir_fd=folder)
    except OSError:
        return None
    try:
        data = os.read(handle, _AT_ONCE)
        if len(data) == _AT_ONCE:
            data += os.read(handle, MAX_DOCUMENT_BYTES - _AT_ONCE + 1)
        if len(data) > MAX_DOCUMENT_BYTES or (having is not None and having not in data):
            return None
        value = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
    return value if isinstance(value, dict) else None
