"""The memory of a step at work: who writes waits for its turn, and what was read is noted for reuse."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from subagents_nb.domain.agents.memory import MemoryPlan
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.tracking.recorder import ReadRecorder
from subagents_nb.store.files.lock import hold
from subagents_nb.store.files.memory_files import journal_folder, link_within, make_memory, memory_sha256, memory_texts

_PATIENCE_S = 60.0


class Remembered:
    """One step's view of its memory. The harness compares and swaps; with a lock around it nobody has to try again."""

    def __init__(self, plan: MemoryPlan, reads: ReadRecorder) -> None:
        self.plan = plan
        self.folder = Path(plan.folder)
        self._reads = reads
        self._known = self._now()

    @classmethod
    def of(cls, step: StepPlan, reads: ReadRecorder) -> Remembered | None:
        """Return the memory of a step; None if it has none. Work in a worktree has that of the main checkout too.

        Raises:
            StepFailed: it holds a link ("setup").
        """
        if step.memory is None:
            return None
        memory = cls(step.memory, reads)
        if step.memory.writes and (link := link_within(memory.folder, step.memory.path)) is not None:
            raise StepFailed(
                "setup", f"The memory of this agent is not written to: {link} in {memory.folder} is a link."
            )
        return memory

    @classmethod
    def to_read(cls, step: StepPlan, reads: ReadRecorder) -> Remembered | None:
        """Return the memory of a step that writes nothing, whatever its agent may elsewhere."""
        plan = step.memory
        return None if plan is None else cls(plan.model_copy(update={"writes": False}), reads)

    def texts(self) -> dict[str, str]:
        """Return what is in it, by the names of its files."""
        return memory_texts(self.folder, self.plan.path)

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Be the only one that writes into memory.

        Raises:
            OSError: another process was at it all the time, or the folder can't be written to.
        """
        handle = await in_thread(self._locked)
        try:
            self._look()
            yield
            self._known = self._now()
        finally:
            os.close(handle)

    def close(self) -> None:
        """Note what was read, as the step leaves it."""
        if self.plan.writes:
            self._look()
        self._reads.memory[self.plan.scope, self.plan.path] = self._known

    def _locked(self) -> int:
        make_memory(self.folder)
        journal = journal_folder(self.folder)
        journal.mkdir(mode=0o700, parents=True, exist_ok=True)
        return hold(journal / "lock", patience_s=_PATIENCE_S)

    def _look(self) -> None:
        if (now := self._now()) != self._known:
            self._reads.untracked("its memory was changed by others while it was at work")
            self._known = now

    def _now(self) -> str | None:
        return memory_sha256(self.folder, self.plan.path)
