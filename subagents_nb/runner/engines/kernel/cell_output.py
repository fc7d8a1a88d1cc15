"""What a kernel says about one cell: as outputs of a notebook, and as the text that the model gets. No IO.

A page that is made of the notebook runs what stands in HTML, Markdown, LaTeX or SVG and takes a picture
as it is. So only plain words are kept, and pictures in an encoding of ours.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.values.words import plain
from subagents_nb.runner.engines.kernel.preload import TABLE_MIME
from subagents_nb.runner.engines.tools.shell import HeadAndTail

TEXT_BYTES = 50_000
_STREAM_CHARS = 200_000
_OUTPUTS = 200
_FIGURE_BYTES = 20_000_000
_PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_SOURCES = ("text/markdown", "text/latex")  # text that a reader would make more of
_NO_WORDS = re.compile(r"<[\w.]+ object>\Z")


@dataclass(slots=True)
class Cell:
    """One cell while it is carried out, and afterwards."""

    code: str
    number: int | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    figures: list[bytes] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None  # the exception's name
    _text: HeadAndTail = field(default_factory=lambda: HeadAndTail(TEXT_BYTES))

    def on_message(self, message: dict[str, Any]) -> None:
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
        text = _plain(text)
        self._text.add(text.encode("utf-8", "replace"))
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") != "stream" or last["name"] != name:
            last = {"output_type": "stream", "name": name, "text": ""}
            self._add(last)
        room = _STREAM_CHARS - len(last["text"])
        last["text"] += text[: max(0, room)]

    def _shown(self, kind: str, content: dict[str, Any]) -> None:
        bundle = content.get("data")
        data = {str(k): v for k, v in bundle.items()} if isinstance(bundle, dict) else {}
        table = data.get(TABLE_MIME)
        if isinstance(table, dict):
            self.tables.append(table)
        pictures = {name: picture for name in _PICTURES if (picture := _picture(name, data.get(name))) is not None}
        figure = pictures.get("image/png")
        if figure is not None:
            self.figures.append(figure)
        kept: dict[str, Any] = {name: base64.b64encode(picture).decode() for name, picture in pictures.items()}
        text = data.get("text/plain")
        if isinstance(text, str):
            text = kept["text/plain"] = _plain(text)
            if figure is None or kind == "execute_result":
                self._text.add(f"{text}\n".encode("utf-8", "replace"))
            source = next((one for name in _SOURCES if isinstance(one := data.get(name), str)), None)
            if source is not None and _NO_WORDS.match(text):
                kept["text/plain"] = _plain(source)
        if "application/json" in data:
            kept["application/json"] = data["application/json"]
        output: dict[str, Any] = {"output_type": kind, "data": kept, "metadata": {}}
        if kind == "execute_result":
            output["execution_count"] = self.number
        self._add(output)

    def _error(self, content: dict[str, Any]) -> None:
        name, value = _plain(str(content.get("ename", ""))), _plain(str(content.get("evalue", "")))
        lines = content.get("traceback")
        trace = [_plain(str(line)) for line in lines] if isinstance(lines, list) else []
        self.error = name or "Exception"
        self._text.add("\n".join(trace or [f"{name}: {value}"]).encode("utf-8", "replace") + b"\n")
        self._add({"output_type": "error", "ename": name, "evalue": value, "traceback": trace})

    def _add(self, output: dict[str, Any]) -> None:
        if len(self.outputs) < _OUTPUTS:
            self.outputs.append(output)


def _number(content: dict[str, Any]) -> int | None:
    number = content.get("execution_count")
    return number if isinstance(number, int) else None


def _picture(kind: str, data: Any) -> bytes | None:
    if not isinstance(data, str) or len(data) > _FIGURE_BYTES * 3 // 2:
        return None
    try:
        found = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if found.startswith(_PICTURES[kind]) else None


def _plain(text: str) -> str:
    # A line that is written over and over, as a progress bar is, stays one.
    return "\r".join(map(plain, text.replace("\r\n", "\n").split("\r")))
