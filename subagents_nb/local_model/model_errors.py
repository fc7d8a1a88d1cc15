"""The one error of this package."""

from __future__ import annotations

from subagents_nb.errors import SubagentsError


class LocalModelError(SubagentsError):
    """The local model can't be installed, started or reached; the text says why and what to do next."""
