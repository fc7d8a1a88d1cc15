"""Pages of a run's events: whole lines with where each begins, a bounded piece of the file at a time."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pydantic_core import from_json

from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import RunPaths

PAGE_BYTES = 128 * 1024


class EventPage(NamedTuple):
    """The lines of a piece of the file, each with the byte at which it begins."""

    records: list[tuple[int, dict[str, Any]]]
    begin: int
    end: int  # where the next page begins
    size: int  # of the whole file


def read_page(paths: RunPaths, begin: int = 0, most: int = PAGE_BYTES) -> EventPage:
    """Read the whole lines of a piece; one that begins before it is left out, as is what is no event."""
    try:
        file = DISK.open_reading(paths.events)
    except Unreadable:
        return EventPage([], 0, 0, 0)
    with file:
        size = file.seek(0, os.SEEK_END)
        begin = min(begin, size)
        file.seek(max(0, begin - 1))
        data = file.read(most + 1)
    at = max(0, begin - 1)
    if begin:  # the line of a page that begins within it is the page's before
        first = data.find(b"\n") + 1
        at, data = (at + first, data[first:]) if first else (at + len(data), b"")
    whole = data.rfind(b"\n") + 1
    if not whole and len(data) > most - 1:
        return EventPage([], begin, at + len(data), size)  # a line longer than any of ours
    records = []
    begin = at
    for row in data[:whole].splitlines(keepends=True):
        record = _parsed(row)
        if isinstance(record, dict):
            records.append((at, record))
        at += len(row)
    return EventPage(records, begin, at, size)


def _parsed(row: bytes) -> Any:
    try:
        return from_json(row.decode("utf-8", "replace"))
    except ValueError:
        return None
