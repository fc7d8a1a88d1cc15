"""The lines of `events.jsonl`: numbered, timed, and short enough to be written whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from subagents_nb.domain.runs.events import (
    ArtifactMade,
    ChangedMeanwhile,
    EngineEvent,
    FileChanged,
    ModelAsked,
    ModelLoading,
    ModelNamed,
    Noticed,
    ServersSeen,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
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


def event_line(event: EngineEvent) -> tuple[str, dict[str, Any]]:
    """Return the type of an event's line and its fields."""
    match event:
        case ModelLoading():
            return "model-loading", {}
        case ModelAsked(number):
            return "model-asked", {"request": number}
        case TextStreamed(text):
            return "text", {"text": text}
        case ThoughtStreamed(text):
            return "thinking", {"text": text}
        case ToolStarted(call_id, name, args):
            return "tool-started", {"call": call_id, "tool": name, "args": args[:160]}
        case ToolEnded(call_id, ok, seconds, preview, refused):
            fields: dict[str, Any] = {"call": call_id, "ok": ok, "seconds": round(seconds, 3), "preview": preview[:500]}
            return "tool-ended", fields | ({"refused": refused[:300]} if refused is not None else {})
        case UsageChanged(usage, tokens):
            return "usage", usage.model_dump(exclude_none=True) | ({"context_tokens": tokens} if tokens else {})
        case ModelNamed(model):
            return "model-named", {"model": model}
        case FileChanged(path):
            return "file-changed", {"path": path}
        case ChangedMeanwhile(path):
            return "changed-meanwhile", {"path": path}
        case ArtifactMade(artifact):
            return "artifact", artifact.model_dump(mode="json", exclude_none=True)
        case ServersSeen(servers):
            return "mcp-servers", {"servers": [one.model_dump(mode="json") for one in servers]}
        case Noticed(code, text):
            return "notice", {"code": code, "text": text}
        case _:
            assert_never(event)
