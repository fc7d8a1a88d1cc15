"""What a kernel says about one cell: as outputs of a notebook, and as the text that the model gets. No IO."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.runner.engines.kernel.preload import TABLE_MIME
from subagents_nb.runner.engines.shell import Keeper

TEXT_BYTES = 50_000
_STREAM_CHARS = 200_000
_OUTPUTS = 200
_FIGURE_BYTES = 20_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
# Nothing that a page would run.
_KEPT_TYPES = ("text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "application/json")


@dataclass(slots=True)
class Cell:
    """One cell while it is carried out, and afterwards."""

    code: str
    number: int | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    figures: list[bytes] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None  # the exception's name
    _text: Keeper = field(default_factory=lambda: Keeper(TEXT_BYTES))

    def hear(self, message: dict[str, Any]) -> None:
        """Take one message of the kernel's about this cell. What it does not look like is left out."""
        content = message.get("content")
        if not isinstance(content, dict):
            return
        match message.get("msg_type"):
            case "stream":
                self._stream(str(content.get("name")), str(content.get("text", "")))
            case "execute_input":
                self.number = _number(content)
            case "display_data" | "update_display_data":
                self._shown("display_data", content)
            case "execute_result":
                self.number = _number(content)
                self._shown("execute_result", content)
            case "error":
                self._error(content)

    def say(self, text: str) -> None:
        """Add something of ours to the text."""
        self._text.add(f"\n[{text}]".encode())

    def text(self) -> str:
        """Return what the model gets to read."""
        return self._text.text().strip("\n") or "(no output)"

    def _stream(self, name: str, text: str) -> None:
        name = "stderr" if name == "stderr" else "stdout"
        text = _ANSI.sub("", text)
        self._text.add(text.encode("utf-8", "replace"))
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") != "stream" or last["name"] != name:
            last = {"output_type": "stream", "name": name, "text": ""}
            self._add(last)
        room = _STREAM_CHARS - len(last["text"])
        last["text"] += text[: max(0, room)]

    def _shown(self, kind: str, content: dict[str, Any]) -> None:
        given = content.get("data")
        data = {str(k): v for k, v in given.items()} if isinstance(given, dict) else {}
        table = data.get(TABLE_MIME)
        if isinstance(table, dict):
            self.tables.append(table)
        figure = _png(data.get("image/png"))
        if figure is not None:
            self.figures.append(figure)
        else:
            data.pop("image/png", None)
        plain = data.get("text/plain")
        if isinstance(plain, str) and (figure is None or kind == "execute_result"):
            self._text.add(f"{_ANSI.sub('', plain)}\n".encode("utf-8", "replace"))
        output: dict[str, Any] = {
            "output_type": kind,
            "data": {name: data[name] for name in _KEPT_TYPES if name in data},
            "metadata": {},
        }
        if kind == "execute_result":
            output["execution_count"] = self.number
        self._add(output)

    def _error(self, content: dict[str, Any]) -> None:
        name, value = str(content.get("ename", "")), _ANSI.sub("", str(content.get("evalue", "")))
        lines = content.get("traceback")
        trace = [_ANSI.sub("", str(line)) for line in lines] if isinstance(lines, list) else []
        self.error = name or "Exception"
        self._text.add("\n".join(trace or [f"{name}: {value}"]).encode("utf-8", "replace") + b"\n")
        self._add({"output_type": "error", "ename": name, "evalue": value, "traceback": trace})

    def _add(self, output: dict[str, Any]) -> None:
        if len(self.outputs) < _OUTPUTS:
            self.outputs.append(output)


def _number(content: dict[str, Any]) -> int | None:
    number = content.get("execution_count")
    return number if isinstance(number, int) else None


def _png(data: Any) -> bytes | None:
    if not isinstance(data, str) or len(data) > _FIGURE_BYTES * 4 // 3:
        return None
    try:
        found = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return None
    return found if found.startswith(_PNG) else None
