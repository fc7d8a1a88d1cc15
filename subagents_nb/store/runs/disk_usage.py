"""How much of the disk a run takes. A run may take so much and no more."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.store.layout import RunPaths

DISK_CAP_BYTES = 100 * 1000 * 1000
_MAX_ENTRIES = 50_000


def disk_use(paths: RunPaths | Path, *, enough: int | None = None) -> int:
    """Return the bytes that a run's directory takes on the disk. No link is followed; what vanishes meanwhile is 0.

    The walk is bounded: it ends after 50,000 entries, or as soon as more than `enough` bytes are found: the answer
    is then what there is at least.
    """
    root = os.fspath(paths.root if isinstance(paths, RunPaths) else paths)
    pending = [] if os.path.islink(root) else [root]
    total, left = 0, _MAX_ENTRIES
    while pending and left > 0:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    left -= 1
                    total += _look(entry, pending)
                    if left <= 0 or (enough is not None and total > enough):
                        return total
        except OSError:
            continue
    return total


def _look(entry: os.DirEntry[str], pending: list[str]) -> int:
    """Return the size of one entry; a directory is put down to be walked."""
    try:
        if entry.is_symlink():
            return 0
        if entry.is_dir(follow_symlinks=False):
            pending.append(entry.path)
            return 0
        info = entry.stat(follow_symlinks=False)
    except OSError:
        return 0
    # Blocks say what is taken: a file with holes takes less than its length, a tiny one more. Some systems keep none.
    return getattr(info, "st_blocks", 0) * 512 or info.st_size
