"""Git worktrees of a run: made before the work, captured as a patch after it, removed only when that is proved."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.domain.plan import StepPlan
from subagents_nb.domain.worktree import WorktreeRecord
from subagents_nb.store.layout import RunPaths


class Worktrees:
    """All worktrees of one run."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths

    async def prepare(self, step: StepPlan, *, label: str) -> Path:
        """Make the step's worktree and return the directory it works in.

        Raises:
            StepFailed: it could not be made; nothing of it is left.
        """
        raise NotImplementedError

    async def capture(self, step: StepPlan) -> WorktreeRecord:
        """Keep what the step changed as a patch, prove that it applies, and remove the tree if it is proved."""
        raise NotImplementedError
