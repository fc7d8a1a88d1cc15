"""What a tool of a server answers, as the model is told it: texts; what is large or no text is kept as an artifact."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Callable
from typing import Any

from mcp_types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent

from subagents_nb.domain.runs.events import ArtifactMade, EngineEvent
from subagents_nb.runner.engines.clean_text import Redactor, one_line
from subagents_nb.runner.engines.engine import ServedTool
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter

MOST_CHARS = 50_000
_HEAD_CHARS = 2_000
_PNG = b"\x89PNG\r\n\x1a\n"


class Answers:
    """Makes texts of results, and keeps what else is in them."""

    def __init__(self, step: int, keeper: ArtifactWriter | None, report: Callable[[EngineEvent], None]) -> None:
        self._step = step
        self._keeper = keeper
        self._report = report

    def text_of(self, result: CallToolResult, tool: ServedTool, redact: Redactor) -> str:
        """Return what the model is told of a result: what a server was given as a secret is kept nowhere."""
        parts = [self._part(part, tool, redact) for part in result.content]
        if not parts and result.structured_content is not None:
            parts = [json.dumps(result.structured_content, ensure_ascii=False)]
        text = redact("\n".join(part for part in parts if part) or "(no output)")
        if len(text) <= MOST_CHARS:
            return text
        where = self._kept(text.encode("utf-8", "replace"), f"{tool.own}.txt", "text/plain")
        return f"{text[:_HEAD_CHARS]}\n[... {len(text):,} characters in all, of which this is the beginning; {where}]"

    def _part(self, part: Any, tool: ServedTool, redact: Redactor) -> str:
        match part:
            case TextContent():
                return part.text
            case ImageContent() | AudioContent():
                return self._data(part.data, part.mime_type, tool, redact)
            case ResourceLink():
                return f"[resource {one_line(str(part.uri), 500)}: {one_line(part.name, 200)}]"
            case EmbeddedResource():
                inner = part.resource
                text = getattr(inner, "text", None)
                if text is not None:
                    return str(text)
                kind = inner.mime_type or "application/octet-stream"
                return self._data(getattr(inner, "blob", ""), kind, tool, redact)
            case _:
                return "[something that is no text]"

    def _data(self, encoded: str, media_type: str, tool: ServedTool, redact: Redactor) -> str:
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return "[data that can't be read]"
        with contextlib.suppress(UnicodeDecodeError):  # a text all the same, perhaps
            data = redact(data.decode()).encode()
        media_type = one_line(media_type, 80)
        ending = media_type.rpartition("/")[2]
        return f"[{media_type}, {len(data):,} bytes; {self._kept(data, f'{tool.own}.{ending}', media_type)}]"

    def _kept(self, data: bytes, name: str, media_type: str) -> str:
        keeper = self._keeper
        if keeper is None:
            return "it is not kept"
        is_figure = media_type == "image/png" and data.startswith(_PNG)
        made = keeper.figure(self._step, data) if is_figure else keeper.answer(self._step, data, name, media_type)
        if made is None:
            return "it could not be kept"
        self._report(ArtifactMade(made))
        return f"kept whole as artifact {made.name}"


def hints_of(annotations: Any) -> str:
    """Return what a server says of a tool, for a person who is asked: nobody checks it, nothing is decided by it."""
    if annotations is None:
        return ""
    said = []
    if annotations.read_only_hint is not None:
        said.append("it only reads" if annotations.read_only_hint else "it changes something")
    if annotations.destructive_hint is not None and not annotations.read_only_hint:
        said.append("it may destroy" if annotations.destructive_hint else "it only adds")
    if annotations.open_world_hint is not None:
        said.append(
            "it reaches beyond this machine" if annotations.open_world_hint else "it stays within its own world"
        )
    return ", ".join(said)
