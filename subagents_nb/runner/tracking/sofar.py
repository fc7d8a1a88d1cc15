"""What a run at work has read so far, on disk beside its status: who launches the same compares it before attaching."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from subagents_nb.domain.runs.reads import ReadLog, ReadsSoFar
from subagents_nb.store.runs.writer import RunWriter


class KeptReads:
    """Writes the account of reads whenever it has changed."""

    def __init__(self, run_id: str, log: Callable[[], ReadLog | None], writer: RunWriter) -> None:
        self._run_id = run_id
        self._log = log
        self._writer = writer
        self._kept: ReadLog | None = ReadLog()

    def keep(self) -> None:
        """Write what is known now; a disk that refuses is asked again the next time, and keeps nobody from working."""
        log = self._log()
        if log is None or log == self._kept:
            return
        with contextlib.suppress(OSError):
            self._writer.reads(ReadsSoFar(run_id=self._run_id, reads=log))
            self._kept = log
