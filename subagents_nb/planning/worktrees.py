"""Whether a step works in a git worktree of its own."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.worktree import WorktreePlan
from subagents_nb.planning.facts import Facts


def plan_worktree(asked: Any, facts: Facts, reasons: list[str]) -> WorktreePlan | None:
    """Return the worktree of a step, or None."""
    del facts
    if asked:
        reasons.append("worktrees are not carried out yet")
    return None
