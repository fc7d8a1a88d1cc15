"""The way into a run's directory that follows no link: each directory from the run's own downwards is held open.

Directories are private, so only a process of the same user could put a link in the place of one. It gets an error, not
the files of somebody else.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from subagents_nb.store.files.opener import FOLDER

_HERE = (os.open in os.supports_dir_fd) and hasattr(os, "O_DIRECTORY")
# A run's directory, where it lives or in the trash, and the separator behind it. The last one in a path counts.
_PLACE = re.compile(r"(.*/(?:runs|trash)/r-[0-9a-z]{19}(?:\.[0-9TZ]+)?)/")
_FLAGS = FOLDER | getattr(os, "O_PATH", 0)


@contextlib.contextmanager
def inside(path: str | os.PathLike[str]) -> Iterator[tuple[int | None, str]]:
    """Give the directory that holds `path` as a descriptor, and the name in it; None and the path outside of a run.

    Raises:
        FileNotFoundError: one of its directories is missing.
        NotADirectoryError: one of them, from the run's own downwards, is a link or no directory.
    """
    text = os.fspath(path)
    handle = open_parent(text)
    if handle is None:
        yield None, text
        return
    try:
        yield handle, text.rpartition(os.sep)[2]
    finally:
        os.close(handle)


def open_parent(path: str | os.PathLike[str]) -> int | None:
    """Open the directory that holds `path`, without following a link; None outside of a run. Raises as `inside`."""
    text = os.fspath(path)
    start = _PLACE.search(text) if _HERE else None
    if start is None:
        return None
    handle = os.open(start[1], _FLAGS)
    if text.find(os.sep, start.end()) < 0:
        return handle
    for part in text[start.end() :].split(os.sep)[:-1]:
        outer = handle
        try:
            handle = os.open(part, _FLAGS, dir_fd=outer)
        finally:
            os.close(outer)
    return handle


def names_in(directory: str | os.PathLike[str]) -> list[str]:
    """Return what lies in a directory of ours.

    Raises:
        OSError: it is missing, or a link.
    """
    with inside(directory) as (folder, name):
        if folder is None:
            return os.listdir(directory)
        handle = os.open(name, FOLDER, dir_fd=folder)
        try:
            return os.listdir(handle)
        finally:
            os.close(handle)
