"""What settings say of an agent in place of its file: `[agents.NAME]`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from subagents_nb.domain.values.base import Value


class AgentOverride(Value):
    """One table of one file."""

    name: str
    origin: str  # the file, as shown
    by_project: bool = False
    fields: dict[str, Any] = Field(default_factory=dict)  # by the names of a definition; `denied`, `disabled` too
