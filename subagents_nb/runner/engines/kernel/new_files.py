"""Which files of a workspace are new or changed since a look before. Bounded: a huge tree is not looked through.

A look opens directories, which a watch takes for somebody's interest in their names. Where one is kept, it says which
files are to be looked at, and those are only asked for their stamps.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST = 20_000
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
            if seen > MOST:
                return None
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _counts(entry.name):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    found[path] = _stamp(entry.stat(follow_symlinks=False))
            except OSError:
                continue
    return found


def stamps(root: Path, paths: Iterable[str]) -> dict[str, Stamp]:
    """Return the same of those of these paths that are plain files such as a look finds. No directory is opened."""
    found: dict[str, Stamp] = {}
    for path in paths:
        try:
            info = os.lstat(os.path.join(root, path))
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(info.st_mode) and all(map(_counts, path.split("/"))):
            found[path] = _stamp(info)
    return found


def _counts(name: str) -> bool:
    return not name.startswith(".") and name not in _LEFT_OUT


def _stamp(info: os.stat_result) -> Stamp:
    return info.st_mtime_ns, info.st_size, info.st_ino


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return
