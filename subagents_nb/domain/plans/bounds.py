"""Where an answer is kept as a file, and how much of it a result holds; the whole is kept in a file of its own then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import Whole, parse_amount

MAX_OUTPUT_CHARS = 200 * 1024


def _chars(given: Any) -> Any:
    number, unit = parse_amount(given) if isinstance(given, str) else (given, "")
    return given if unit else number  # which is refused then, as money is


class OutputBound(Value):
    """The head of an answer: so many characters at most, and so many lines. What is structured is never cut."""

    chars: Annotated[Whole, BeforeValidator(_chars)] = Field(default=MAX_OUTPUT_CHARS, gt=0, le=MAX_OUTPUT_CHARS)
    lines: Whole | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _form(cls, given: Any) -> Any:
        return given if isinstance(given, Mapping | OutputBound) else {"chars": given}

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


class OutputPlan(Value):
    """Where the answer of a step is kept as a file of the workspace."""

    path: str  # relative to the run's directory, never out of it
    mode: Literal["inline", "file-only"] = "inline"
    explicit: bool = True  # asked for at the launch, not by the agent's file
