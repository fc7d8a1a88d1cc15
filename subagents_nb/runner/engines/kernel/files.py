"""Which files of a workspace are new or changed since a look before. Bounded: a huge tree is not looked through."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_MOST = 20_000
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})
Stamp = tuple[int, int, int]


def look(root: Path) -> dict[str, Stamp] | None:
    """Return each plain file with what changes when it is written; None if there are too many to look at."""
    found: dict[str, Stamp] = {}
    seen = 0
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in _entries(os.path.join(root, folder)):
            seen += 1
            if seen > _MOST:
                return None
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    info = entry.stat(follow_symlinks=False)
                    found[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
            except OSError:
                continue
    return found


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return
