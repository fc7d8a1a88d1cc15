"""Hears when statuses are put in place in run directories, by inotify.

The time stamps of files lag the clock by up to two of the system's ticks, eight milliseconds: too much for budgets of
fifteen.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_MOVED_TO = 0x80
_EVENT = struct.Struct("iIII")
_ENDED = frozenset({"complete", "partial", "failed", "stopped", "rejected", "lost", "paused"})


@dataclass(frozen=True, slots=True)
class Write:
    """One status as it was put in place."""

    at: float
    seq: int
    state: str
    elapsed_s: float


class Writes:
    """Follows the statuses of some runs on a thread of its own."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(os.O_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "no inotify here")
        self._roots: dict[int, Path] = {}
        self._writes: dict[Path, dict[int, Write]] = {}
        self._over = threading.Event()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def follow(self, root: Path) -> None:
        """Follow the run in this directory from now on."""
        self._writes[root] = {}
        watch = self._libc.inotify_add_watch(self._handle, os.fsencode(root), _MOVED_TO)
        self._roots[watch] = root
        self._take(root, time.time())

    def statuses(self, root: Path) -> list[Write]:
        """Return what was put in place so far, in order."""
        with self._news:
            return sorted(self._writes[root].values(), key=lambda write: write.seq)

    def ended_at(self, root: Path, within_s: float = 20.0) -> float:
        """Wait for the status that says the end, and return when it was there."""
        deadline = time.monotonic() + within_s
        with self._news:
            while True:
                last = [write for write in self._writes[root].values() if write.state in _ENDED]
                if last:
                    return last[0].at
                if not self._news.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"no terminal status in {root} after {within_s:g} s")

    def close(self) -> None:
        """Follow nothing any more."""
        self._over.set()
        self._thread.join()
        os.close(self._handle)

    def _listen(self) -> None:
        while not self._over.is_set():
            if not select.select([self._handle], [], [], 0.2)[0]:
                continue
            data, now = os.read(self._handle, 65536), time.time()
            at = 0
            while at < len(data):
                watch, _, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0").decode()
                at += _EVENT.size + length
                # One that was added an instant ago may not be known here yet; its present state was read.
                if name == "status.json" and (root := self._roots.get(watch)) is not None:
                    self._take(root, now)

    def _take(self, root: Path, now: float) -> None:
        try:
            status = json.loads((root / "status.json").read_bytes())
        except (OSError, ValueError):
            return
        write = Write(now, int(status["seq"]), str(status["state"]), float(status["elapsed_s"]))
        with self._news:
            self._writes[root][write.seq] = write
            self._news.notify_all()
