"""The inputs of a run as files: written once by the launcher before there is a status, and only read afterwards."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Protocol

from subagents_nb.domain.plans.inputs import FOLDER, InputRecord
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths

READ_ONLY = 0o400
_CHUNK = 1024 * 1024


class Content(Protocol):
    """An input with its bytes."""

    @property
    def record(self) -> InputRecord: ...
    @property
    def data(self) -> bytes: ...


def write_inputs(paths: RunPaths, contents: Sequence[Content], *, disk: Disk = DISK) -> None:
    """Write the files of a run that is being made. What a power cut spoils of them, their sha256 tells.

    Raises:
        OSError: the disk refuses.
    """
    if not contents:
        return
    disk.make_dir(paths.root / FOLDER)
    for one in contents:
        handle = disk.open(paths.root / one.record.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            disk.write(handle, one.data)
            os.fchmod(handle, READ_ONLY)
        finally:
            os.close(handle)


def read_input(paths: RunPaths, record: InputRecord) -> bytes:
    """Return the bytes of an input, checked.

    Raises:
        StoreError: they are not there, or not those that were put in.
    """
    try:
        file = DISK.open_reading(paths.root / record.file)
    except Unreadable as error:
        raise StoreError(f"The input {record.name} of run {paths.root.name} can't be read: {error}.") from error
    with file:
        # Not as many bytes as the record says: it may come from an archive.
        data = file.read() if os.fstat(file.fileno()).st_size == record.bytes else b""
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise StoreError(f"The input {record.name} of run {paths.root.name} is not what was put in: it was changed.")
    return data
