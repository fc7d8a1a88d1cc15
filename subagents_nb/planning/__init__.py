"""From a request, agents and settings to a frozen draft of a plan, or to all the reasons against it. Pure."""

from __future__ import annotations

from subagents_nb.planning.draft import draft
from subagents_nb.planning.facts import Facts

__all__ = ["Facts", "draft"]
