"""Read what was asked of a run. A request that is not what the name of its file says is refused, never widened."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document


def read_request(path: Path, run_id: str, *, disk: Disk = DISK) -> ControlRequest:
    """Read the request in `control/VERB-ID.json`.

    Raises:
        Unreadable: it can't be read, or holds another verb or id than its name says.
    """
    request = read_document(path, ControlRequest, run_id, disk=disk)
    if path.name != request_name(request):
        raise Unreadable(f"its file would have to be called {request_name(request)}", kind="foreign")
    return request


def request_name(request: ControlRequest) -> str:
    """Return the name of a request's file."""
    return f"{request.verb}-{request.request_id}.json"


def stops_of(paths: RunPaths) -> list[ControlRequest]:
    """Return the readable requests that the whole run be stopped, oldest first; a stop of one step is none."""
    try:
        names = sorted(name for name in DISK.names(paths.control) if name.startswith("stop-"))
    except OSError:
        return []
    found = []
    for name in names:
        with contextlib.suppress(Unreadable):
            request = read_request(paths.control / name, paths.root.name)
            if request.verb == "stop" and request.step is None:
                found.append(request)
    return found


def is_heard(paths: RunPaths, request: ControlRequest) -> bool:
    """Say whether the runner knows of a request: it was answered, or marked where no answer could be stored."""
    if (paths.answers / f"{request.request_id}.json").exists():
        return True
    with contextlib.suppress(OSError):
        return (paths.control / request_name(request)).lstat().st_mtime_ns == 0
    return False


def mark_heard(paths: RunPaths, request: ControlRequest, *, disk: Disk = DISK) -> None:
    """Mark a request as known by setting its time to zero, which takes no room on a disk that is full: the runner."""
    with contextlib.suppress(OSError, NotImplementedError):
        handle = disk.open(paths.control / request_name(request), os.O_RDONLY)
        try:
            os.utime(handle, ns=(0, 0))
        finally:
            os.close(handle)
