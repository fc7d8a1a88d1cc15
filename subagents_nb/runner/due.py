"""Publish by when a run should have ended, for whoever watches this process from outside.

The time of an empty file says it, in the system's monotonic clock, which all processes share and nobody sets. To set a
time takes no room, so a full disk does not make a run that goes on look like one that hangs. Zero: there is no such
moment, or not now, while the run waits for an answer or a rate limit, or stores its result.
"""

from __future__ import annotations

import contextlib
import os
import time

from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths

_CHANGE_S = 0.5


class Due:
    """Written when it changes by more than half a second; a disk that refuses is asked at the next change."""

    def __init__(self, paths: RunPaths, disk: Disk = DISK) -> None:
        self._path = paths.due
        self._said: float | None = None
        with contextlib.suppress(OSError):
            os.close(disk.open(self._path, os.O_CREAT | os.O_WRONLY))
        self.say(None)

    def say(self, left_s: float | None) -> None:
        """Say how much time is left; None: as much as it takes."""
        moment = 0.0 if left_s is None else time.monotonic() + left_s
        if self._said is not None and abs(moment - self._said) < _CHANGE_S:
            return
        with contextlib.suppress(OSError):
            os.utime(self._path, ns=(0, int(moment * 1e9)), follow_symlinks=False)
            self._said = moment
