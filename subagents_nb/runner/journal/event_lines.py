"""How an engine's events stand in events.jsonl."""

from __future__ import annotations

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
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)


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
        case UsageChanged(usage):
            return "usage", usage.model_dump(exclude_none=True)
        case ModelNamed(model):
            return "model-named", {"model": model}
        case FileChanged(path):
            return "file-changed", {"path": path}
        case ChangedMeanwhile(path):
            return "changed-meanwhile", {"path": path}
        case ArtifactMade(artifact):
            return "artifact", artifact.model_dump(mode="json", exclude_none=True)
        case Noticed(code, text):
            return "notice", {"code": code, "text": text}
        case _:
            assert_never(event)
