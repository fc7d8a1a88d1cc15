"""How much of an answer a result holds and later steps are given. The whole is kept in a file of its own."""

from __future__ import annotations

from pydantic import Field

from subagents_nb.domain.values.base import Value

MAX_OUTPUT_CHARS = 200 * 1024


class OutputBound(Value):
    """The head of an answer: so many characters at most, and so many lines. What is structured is never cut."""

    chars: int = Field(default=MAX_OUTPUT_CHARS, gt=0, le=MAX_OUTPUT_CHARS)
    lines: int | None = Field(default=None, gt=0)

    def head(self, text: str) -> str:
        """Return what of a text lies within the bound."""
        if self.lines is not None:
            end = -1
            for _ in range(self.lines):
                end = text.find("\n", end + 1)
                if end < 0 or end >= self.chars:
                    break
            else:
                text = text[:end]
        return text[: self.chars]
