"""`children.jsonl`: the processes that a runner started and has not seen end, for whoever has to clear up after it.

Written by the runner alone, a line when a child begins and one when it was seen to end; made when the runner begins, so
that an empty one says that nothing was started and a missing one that nobody knows.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.runs.exit_report import ChildEnd
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.processes.process_list import Process

_LONG_BYTES = 64 * 1024


class ChildLog:
    """The writing half. A disk that refuses a line is asked for all of them at the next one; no call fails."""

    def __init__(self, path: Path, *, disk: Disk = DISK) -> None:
        self._path = path
        self._disk = disk
        self._open: dict[int, ChildEnd] = {}
        self._handle: int | None = None
        self._size = 0
        self._rewrite()

    def began(self, row: ChildEnd) -> None:
        """Note that a child began."""
        self._open[row.pid] = row
        self._add(_line(row))

    def ended(self, pid: int) -> None:
        """Note that a child was seen to end."""
        if self._open.pop(pid, None) is not None:
            self._add(json.dumps({"pid": pid, "ended": True}).encode() + b"\n")

    def _add(self, line: bytes) -> None:
        if self._handle is None or self._size > _LONG_BYTES:
            self._rewrite()
            return
        try:
            self._disk.write(self._handle, line)
            self._size += len(line)
        except OSError:
            self._give_up()

    def _rewrite(self) -> None:
        """Write a file with nothing but the children that are open now."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        data = b"".join(map(_line, self._open.values()))
        try:
            if data:
                self._disk.replace(self._path, data, durable=False)
                self._handle = self._disk.open(self._path, os.O_APPEND | os.O_WRONLY)
            else:
                self._handle = self._disk.open(self._path, os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_WRONLY)
            self._size = 0
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Leave no file that says less than is so."""
        with contextlib.suppress(OSError):
            self._disk.remove(self._path)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def read_children(path: Path, *, disk: Disk = DISK) -> tuple[ChildEnd, ...] | None:
    """Return the children that a runner had started and not seen end; None if nobody knows. A torn last line is none.

    Raises:
        Unreadable: it can't be read just now, out of descriptors, say.
    """
    try:
        data = disk.read(path)
    except Unreadable as error:
        if error.kind == "busy":
            raise
        return None
    rows: dict[int, ChildEnd] = {}
    for line in data.split(b"\n")[:-1]:
        try:
            fields = json.loads(line)
            if fields.get("ended"):
                rows.pop(int(fields["pid"]), None)
            else:
                row = ChildEnd.model_validate(fields)
                rows[row.pid] = row
        except (ValueError, ValidationError, AttributeError, KeyError, TypeError, RecursionError):
            return None
    return tuple(rows.values())


def is_notice(rows: Iterable[ChildEnd], process: Process) -> bool:
    """Say whether a process is a command that tells the person of a run, or of its session: it may outlive the run."""
    return any(
        row.what == "notice" and row.start_ticks is not None and process.ticks >= row.start_ticks
        for row in rows
        if row.pid in (process.pid, process.session)
    )


def _line(row: ChildEnd) -> bytes:
    fields = {"pid": row.pid, "start_ticks": row.start_ticks, "group": row.group, "what": row.what}
    return json.dumps(fields).encode() + b"\n"
