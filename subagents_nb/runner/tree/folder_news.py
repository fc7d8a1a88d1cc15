"""Hear of new files in the directories of other runs, without looking again and again: inotify(7)."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

_MOVED_TO, _CREATE = 0x80, 0x100  # a document is linked or moved into its place, whole
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if os.name == "posix" else 0
_BUFFER = 1 << 14
UNHEARD_S, BLIND_S = 1.0, 0.1  # how often it is looked all the same; and where the system tells nothing


class FolderWatch:
    """One for all directories that a run watches. Belongs to the event loop, and has one who waits."""

    def __init__(self) -> None:
        self._heard = asyncio.Event()
        self._handle: int | None = None
        with contextlib.suppress(OSError, AttributeError, TypeError):
            self._libc = ctypes.CDLL(None, use_errno=True)
            handle = self._libc.inotify_init1(_FLAGS)
            if handle >= 0:
                self._handle = handle
                asyncio.get_running_loop().add_reader(handle, self._on_readable)

    def watch(self, folder: Path) -> None:
        """Hear of this directory too. If one can't be watched, all are looked at more often."""
        wanted = _MOVED_TO | _CREATE
        if self._handle is not None and self._libc.inotify_add_watch(self._handle, os.fsencode(folder), wanted) < 0:
            self.close()
        self.nudge()

    async def wait(self) -> None:
        """Return when something came since this was called last, or when it is time to look again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNHEARD_S if self._handle is not None else BLIND_S):
                await self._heard.wait()
        self._heard.clear()

    def nudge(self) -> None:
        """Have whoever waits look now."""
        self._heard.set()

    def close(self) -> None:
        """Watch no longer."""
        if self._handle is not None:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _on_readable(self) -> None:
        with contextlib.suppress(OSError):
            while self._handle is not None and os.read(self._handle, _BUFFER):
                pass
        self._heard.set()
