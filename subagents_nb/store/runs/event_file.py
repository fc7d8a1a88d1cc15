"""The lines of a run's `events.jsonl`: appended whole, bounded, and kept apart from what a full disk cut off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from subagents_nb.store.files.codec import lenient_json
from subagents_nb.store.files.disk import Disk

CAP_BYTES = 50 * 1024 * 1024
_LINE_BYTES = 4000


class EventFile:
    """The writing half of one events file, opened by its first line."""

    def __init__(self, path: Path, *, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._handle: int | None = None
        self._size = 0
        self._whole = False  # known to end with a whole line

    def append(self, record: Mapping[str, Any], *, keep: bool) -> None:
        """Append one line to the events: the runner. Beyond the cap only lines with `keep` are written.

        A line longer than a single write can carry whole is cut to its head.
        """
        try:
            line = to_json(record, inf_nan_mode="null") + b"\n"
        except PydanticSerializationError:
            line = lenient_json(record) + b"\n"
        if len(line) > _LINE_BYTES and not keep:
            line = (
                to_json({k: record[k] for k in ("seq", "t", "type", "step") if k in record} | {"cut": len(line)})
                + b"\n"
            )
        if self._size + len(line) > CAP_BYTES and not keep:
            return
        if self._handle is None:
            self._handle = self._disk.open(self._path, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        if not self._whole:
            self._size = os.fstat(self._handle).st_size
            if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
                line = b"\n" + line  # what a full disk cut off must not take this line along
        self._whole = False
        self._disk.write(self._handle, line)
        self._whole = True
        self._size += len(line)

    def sync(self) -> None:
        """Bring the events so far to the device, at a milestone."""
        if self._handle is not None:
            self._disk.sync(self._handle)
