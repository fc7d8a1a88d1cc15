"""The history of a scripted step: earlier messages, then its own, in the form in which a model's is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.session_file import read_session
from subagents_nb.runner.processes.threads import in_thread


class Transcript:
    """Requests and responses, oldest first: what is heard begins a request, what is said goes into one response."""

    def __init__(self, earlier: list[Any] | None = None) -> None:
        self.earlier = len(earlier or ())
        self._messages: list[Any] = list(earlier or ())
        self._said: list[dict[str, Any]] = []  # since the last request; of a streamed part the content is a list

    @classmethod
    async def after(cls, session: Path | None) -> Transcript:
        """Return a transcript that goes on from an earlier session, of a script or of a model.

        Raises:
            StepFailed: the session is missing or can't be read ("setup").
        """
        if session is None:
            return cls()
        content = await in_thread(lambda: read_session(session))
        try:
            messages = json.loads(content)
        except (ValueError, RecursionError):
            messages = None
        if not isinstance(messages, list):
            raise StepFailed("setup", "The session of the earlier run is damaged, so it can't be resumed.")
        return cls(messages)

    def add_prompt(self, text: str) -> None:
        """Take what was said to the model."""
        self._request({"part_kind": "user-prompt", "content": text})

    def say(self, text: str) -> None:
        """Take a piece of what the model says."""
        self._stream("text", text)

    def think(self, text: str) -> None:
        """Take a piece of what the model thinks."""
        self._stream("thinking", text)

    def call(self, call_id: str, tool: str, args: dict[str, Any]) -> None:
        """Take a call of a tool."""
        arguments = json.dumps(args, ensure_ascii=False)
        self._said.append({"part_kind": "tool-call", "tool_name": tool, "args": arguments, "tool_call_id": call_id})

    def result(self, call_id: str, tool: str, content: str, *, ok: bool) -> None:
        """Take what a call came to."""
        outcome = "success" if ok else "failed"
        part = {"part_kind": "tool-return", "tool_name": tool, "content": content, "tool_call_id": call_id}
        self._request({**part, "outcome": outcome})

    @property
    def calls(self) -> int:
        """Return how many tool calls there are."""
        return sum(_calls_in(message) for message in self._whole())

    def content(self) -> bytes:
        """Return the whole history."""
        return json.dumps(self._whole(), ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _stream(self, kind: Literal["text", "thinking"], text: str) -> None:
        if not self._said or self._said[-1]["part_kind"] != kind:
            self._said.append({"part_kind": kind, "content": []})
        self._said[-1]["content"].append(text)

    def _request(self, part: dict[str, Any]) -> None:
        self._messages = self._whole()
        self._said = []
        self._messages.append({"kind": "request", "parts": [part]})

    def _whole(self) -> list[Any]:
        if not self._said:
            return self._messages
        parts = [{**part, "content": "".join(part["content"])} if "content" in part else part for part in self._said]
        return [*self._messages, {"kind": "response", "parts": parts}]


def _calls_in(message: Any) -> int:
    parts = message.get("parts") if isinstance(message, dict) else None
    listed = parts if isinstance(parts, list) else ()
    return sum(isinstance(part, dict) and part.get("part_kind") == "tool-call" for part in listed)
