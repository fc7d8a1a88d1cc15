"""Whether the person has looked at how a run ended: an empty file in its directory, made by whoever showed it."""

from __future__ import annotations

import contextlib
import os

from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import RunPaths


def mark_seen(paths: RunPaths) -> None:
    """Note that the person has looked at its end. A disk that refuses is no reason to stop: it is shown again."""
    with contextlib.suppress(OSError):
        os.close(DISK.open(paths.seen, os.O_CREAT | os.O_WRONLY))


def is_seen(paths: RunPaths) -> bool:
    """Say whether the person has looked at its end."""
    try:
        os.lstat(paths.seen)
    except OSError:
        return False
    return True
