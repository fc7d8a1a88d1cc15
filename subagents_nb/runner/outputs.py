"""The files of a step: what it is told to read and write, and how its answer is kept."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.domain.plan import StepPlan
from subagents_nb.domain.records import SavedOutput


class OutputFile:
    """The output file of one step, from before its work to its end."""

    def __init__(self, step: StepPlan, cwd: Path) -> None:
        self._step = step
        self._cwd = cwd

    def instructions(self) -> str:
        """Return what is added to the task: which files to read first, where to write, whether to keep notes."""
        return ""

    def keep(self, text: str) -> tuple[SavedOutput | None, str]:
        """Keep the answer; return what was kept, and the text as it goes on to later steps and to the reader."""
        return None, text
