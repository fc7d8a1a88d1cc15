"""The runner's own output: two files in its run directory, on a disk that may be full, and of bounded size."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from subagents_nb.domain.values.words import plain

HEAD_BYTES = 1024 * 1024
CAP_BYTES = 5 * 1024 * 1024
_MARK = b"\n[... what came here was dropped, to keep this file small ...]\n"


class _Raw(io.FileIO):
    """A file to which every write succeeds: no complaint that can't be written down may end a run."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or 0
        return len(memoryview(data))


class _RedactedOutput(io.TextIOWrapper):
    """What is said, less the secrets in it: a traceback may hold one."""

    def __init__(self, raw: _Raw, clean: Callable[[str], str]) -> None:
        super().__init__(raw, "utf-8", "backslashreplace", write_through=True)
        self._clean = clean

    def write(self, text: str, /) -> int:
        super().write(plain(self._clean(text)))  # a person reads it in a terminal
        return len(text)


def forgive(clean: Callable[[str], str] = str) -> None:
    """Let nothing that this process says of itself fail for a disk that refuses; `clean` takes secrets out of it."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        setattr(sys, name, _RedactedOutput(_Raw(number, "w", closefd=False), clean))


def cap() -> None:
    """Cut the middle out of an output file that has grown too large: its head stays, and what comes follows it.

    Libraries and their native code write there too, so it is looked at from time to time and not counted.
    """
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.fstat(number).st_size > CAP_BYTES:
                os.ftruncate(number, HEAD_BYTES)
                os.write(number, _MARK)
