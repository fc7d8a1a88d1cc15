"""The history of a scripted step: earlier messages, then its own, in the form in which a model's is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from subagents_nb.domain.events import StepFailed
from subagents_nb.runner.engines.aside import aside
from subagents_nb.runner.engines.session import read_session


class Transcript:
    """Requests and responses, oldest first."""

    def __init__(self, earlier: list[Any] | None = None) -> None:
        self.earlier = len(earlier or ())
        self._messages: list[Any] = list(earlier or ())
        self._said: list[str] = []  # since the last request

    @classmethod
    async def after(cls, session: Path | None) -> Transcript:
        """Return a transcript that goes on from an earlier session, of a script or of a model.

        Raises:
            StepFailed: the session is missing or can't be read ("setup").
        """
        if session is None:
            return cls()
        content = await aside(lambda: read_session(session))
        try:
            messages = json.loads(content)
        except ValueError:
            messages = None
        if not isinstance(messages, list):
            raise StepFailed("setup", "The session of the earlier run is damaged, so it can't be gone on from.")
        return cls(messages)

    def hear(self, text: str) -> None:
        """Take what was said to the model."""
        self._messages = self._whole()
        self._said = []
        self._messages.append({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]})

    def say(self, text: str) -> None:
        """Take a piece of what the model says."""
        self._said.append(text)

    def content(self) -> bytes:
        """Return the whole history."""
        return json.dumps(self._whole(), ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _whole(self) -> list[Any]:
        if not self._said:
            return self._messages
        parts = [{"part_kind": "text", "content": "".join(self._said)}]
        return [*self._messages, {"kind": "response", "parts": parts}]
