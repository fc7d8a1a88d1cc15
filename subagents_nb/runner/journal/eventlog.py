"""The lines of `events.jsonl`: numbered, timed, and short enough to be written whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.writer import RunWriter

_STREAM_LINE_CHARS = 600  # at six bytes a character still one line below what a single write carries whole


class EventLog:
    """Appends events; a disk that refuses one loses that one. Not safe for threads: the journal guards it."""

    def __init__(self, writer: RunWriter, clock: WorkClock) -> None:
        self._writer = writer
        self._clock = clock
        self._seq = 0

    def line(self, kind: str, fields: Mapping[str, Any], *, keep: bool, step: int | None = None) -> None:
        """Append one event."""
        self._seq += 1
        record = {"seq": self._seq, "t": utc_now(), "s": round(self._clock.worked_s, 3), "type": kind}
        where = {} if step is None else {"step": step}
        with contextlib.suppress(OSError):
            self._writer.events.append({**record, **where, **fields}, keep=keep)

    def streamed(self, parts: Iterable[tuple[str, str]], *, step: int) -> None:
        """Append what a step streamed, by kind, in lines that are written whole."""
        for kind, text in parts:
            for start in range(0, len(text), _STREAM_LINE_CHARS):
                self.line(kind, {"text": text[start : start + _STREAM_LINE_CHARS]}, keep=False, step=step)
