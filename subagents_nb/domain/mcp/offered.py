"""What a server offers: its tools by name, with a hash of what each says of itself; and what changed in that."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from subagents_nb.domain.values.base import Value, sha256_text, stable_json
from subagents_nb.domain.values.words import one_line

_TOLD = 300
_KEPT_CHARS = 1_000_000
_AROUND = 3  # lines


class McpSeen(Value):
    """What a step found of one server."""

    server: str
    digest: str  # over names, texts and schemas of all its tools
    tools: int  # how many it has


class McpOffer(Value):
    """The tools of one server as they were listed."""

    server: str
    seen_at: str = ""
    tools: dict[str, str] = Field(default_factory=dict)  # by name: the SHA-256 of text and schema
    # By name, as a person reads them, so that a difference can be shown; none where they were too long to be kept.
    texts: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, server: str, tools: Mapping[str, tuple[str, Mapping[str, Any]]], seen_at: str) -> McpOffer:
        """Return the offer of a server, by text and schema of each of its tools."""
        hashes = {name: sha256_text(stable_json([text, schema])) for name, (text, schema) in tools.items()}
        return cls(server=server, seen_at=seen_at, tools=dict(sorted(hashes.items())))

    def with_texts(self, texts: Mapping[str, str]) -> McpOffer:
        """Return it with as many of the texts of its tools as may be kept."""
        kept, room = {}, _KEPT_CHARS
        for name, text in texts.items():
            if len(text) <= room:
                kept[name], room = text, room - len(text)
        return self.model_copy(update={"texts": kept})

    @property
    def digest(self) -> str:
        """Return the hash of all of it."""
        return sha256_text(stable_json(self.tools))

    @property
    def seen(self) -> McpSeen:
        """Return it as a result keeps it."""
        return McpSeen(server=self.server, digest=self.digest, tools=len(self.tools))


def what_changed(before: McpOffer, now: McpOffer) -> str:
    """Return in words what is otherwise; nothing if it is the same."""
    new = [name for name in now.tools if name not in before.tools]
    gone = [name for name in before.tools if name not in now.tools]
    other = [name for name, sha in now.tools.items() if before.tools.get(name, sha) != sha]
    parts = (("new", new), ("changed", other), ("gone", gone))
    return "; ".join(f"{word}: {one_line(', '.join(names), _TOLD)}" for word, names in parts if names)


def text_of_tool(title: str | None, text: str | None, schema: Mapping[str, Any]) -> str:
    """Return all that a model is told of a tool, a line for each part of its schema."""
    said = json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False)
    return "\n".join((*filter(None, (title, text)), f"its arguments: {said}"))


def difference(before: str | None, now: str) -> str:
    """Return what is otherwise in the text of a tool, as a patch; all of it if what it was is not known."""
    if before is None:
        return now
    rows = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=_AROUND)
    return "\n".join(itertools.islice(rows, 2, None)) or now
