"""Git worktrees of a run: made before the work, captured as a patch after it, removed only when that is proved.

Git runs in threads. What was begun there is waited for even when the step is ended meanwhile, so that no tree is
half made and no capture half done; a runner that is killed leaves `handoff.json`, by which others find the trees.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from subagents_nb.domain.plans.plan import LaunchPlan, StepPlan
from subagents_nb.domain.plans.worktree import HOOK_VERSION, WorktreePlan, WorktreeRecord
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import Unreadable
from subagents_nb.runner.processes.hooks import HookFailed, run_hook
from subagents_nb.runner.workspace.worktrunk import create_by_worktrunk
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.named_files import hash_of
from subagents_nb.store.git.capture import APPLY, Kept, read_patch
from subagents_nb.store.git.git import Git, GitProblem
from subagents_nb.store.git.trees import create, free_names, roll_back, settle, side_files, untracked
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.handoff import HandoffFile, read_handoff
from subagents_nb.store.runs.reader import read_document

T = TypeVar("T")


class Worktrees:
    """All worktrees of one run."""

    def __init__(
        self, paths: RunPaths, *, disk: Disk = DISK, before: Callable[[int], int | None] | None = None
    ) -> None:
        self._paths = paths
        self._disk = disk
        self._before = before  # the number that a step had in the run before
        self._handoff = HandoffFile(paths, disk=disk)
        self._made: dict[int, Path] = {}
        self._making: dict[int, asyncio.Task[Path]] = {}
        self._broken: dict[int, str] = {}  # steps whose group could not be set up, and why

    async def prepare(self, step: StepPlan, *, label: str) -> Path:
        """Make the step's worktree, unless its group has made it, and return the directory it works in.

        Raises:
            StepFailed: it could not be made; nothing of it is left.
        """
        if step.index in self._broken:
            raise StepFailed("worktree", self._broken[step.index])
        if step.index in self._made:
            return self._made[step.index]
        ending = threading.Event()
        making = asyncio.ensure_future(asyncio.to_thread(self._make, step, label, ending.is_set))
        self._making[step.index] = making
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            ending.set()  # `capture` waits for it, and finds a tree without work, or none
            raise

    async def capture(self, step: StepPlan, *, at_rest: bool = True) -> WorktreeRecord | None:
        """Keep what the step changed as a patch, prove that it applies, and remove the tree if it is proved.

        `at_rest` says that nothing of the step works any more; else its tree is kept besides. None: it has no tree.
        """
        return await _to_the_end(self._captured(step.index, at_rest))

    async def _captured(self, index: int, at_rest: bool) -> WorktreeRecord | None:
        making = self._making.pop(index, None)
        began = making is None or making.done()
        if making is not None and not began:
            await asyncio.wait({making})
        if self._made.pop(index, None) is None:
            return self._known(index)
        keep = "its work did not let go when it was ended" if began and not at_rest else ""
        return await asyncio.to_thread(self._settle, index, keep)

    def take_over(self, record: WorktreeRecord) -> None:
        """Note the captured changes of a step that another run carried out, as those of this run's own."""
        self._note(record)

    @contextlib.asynccontextmanager
    async def group(self, steps: Sequence[StepPlan]) -> AsyncIterator[None]:
        """Make the trees of steps that belong together: all of them, or none, and then no step begins its work.

        Afterwards those are removed whose steps never began.
        """
        wanted = [step for step in steps if step.worktree is not None and step.index not in self._made]
        try:
            if len(wanted) > 1:
                await self._prepare_all(wanted)
            yield
        finally:
            for step in wanted:
                await self.capture(step)

    async def _prepare_all(self, steps: Sequence[StepPlan]) -> None:
        for step in steps:
            try:
                await self.prepare(step, label=step.title)
            except StepFailed as error:
                why = f"No step of the group began: {error.message}"
                self._broken |= dict.fromkeys((one.index for one in steps), why)
                made_here = [one.index for one in steps if self._made.pop(one.index, None) is not None]
                await _to_the_end(asyncio.to_thread(self._undo, made_here, why))
                return

    # --- in a thread ---

    def _make(self, step: StepPlan, label: str, ended: Callable[[], bool]) -> Path:
        plan = step.worktree
        if plan is None:
            raise StepFailed("worktree", "The step asks for no worktree.")
        try:
            path, branch = free_names(plan.repo_root, plan.names(self._paths.root.name, step.index))
            record = WorktreeRecord(
                step=step.index,
                label=label,
                path=path,
                branch=branch,
                base_commit=plan.base_commit,
                repo_root=plan.repo_root,
                state="planned",
                synthetic=side_files(plan.repo_root) if plan.provider == "native" else (),
                provider=plan.provider,
            )
            self._handoff.note(record)
        except (GitProblem, Unreadable, OSError) as error:
            raise StepFailed("worktree", f"The worktree could not be planned: {_error_text(error)}.") from error
        try:
            if plan.provider == "worktrunk":
                record = create_by_worktrunk(record, within_s=plan.hook_timeout_s, ended=ended)
                path, synthetic = record.path, record.synthetic
            else:
                synthetic = create(record)
            self._carry_over(record)
            (Path(path) / plan.subdir).mkdir(parents=True, exist_ok=True)  # git knows of no empty directory
            if plan.setup_hook is not None:
                synthetic += self._set_up(step, plan, record, ended)
            self._handoff.note(record.model_copy(update={"state": "ready", "synthetic": synthetic}))
        except (GitProblem, HookFailed, Kept, Unreadable, OSError) as error:
            text = f"The worktree could not be made: {_error_text(error)}."
            self._undo([step.index], text)
            raise StepFailed("worktree", text) from error
        self._made[step.index] = Path(path) / plan.subdir
        return self._made[step.index]

    def _carry_over(self, record: WorktreeRecord) -> None:
        """Bring what an earlier run changed into the tree of the run that goes on from it; its patch will hold both."""
        plan = read_document(self._paths.plan, LaunchPlan, self._paths.root.name)
        if plan.resumes is None:
            return
        earlier = RunPaths(self._paths.root.parent / plan.resumes.run_id)
        number = plan.resumes.step if self._before is None else self._before(record.step)
        done = None if number is None else read_handoff(earlier).of(number)
        if done is not None and not done.captured and os.path.lexists(done.path):
            raise Kept(f"what the run before changed was not captured yet and is in {done.path}; call its diff() first")
        if done is not None and done.patch is not None:
            read_patch(done, earlier.root)
            Git(cwd=Path(record.path), tree=True)(*APPLY, "--", str(earlier.root / done.patch))

    def _set_up(
        self, step: StepPlan, plan: WorktreePlan, record: WorktreeRecord, ended: Callable[[], bool]
    ) -> tuple[str, ...]:
        hook = Path(plan.repo_root) / str(plan.setup_hook)
        if plan.hook_sha256 and hash_of(hook) != plan.hook_sha256:
            raise HookFailed(f"the setup hook {plan.setup_hook} is another than when the run was planned; launch anew")
        facts = {
            "version": HOOK_VERSION,
            "repo_root": plan.repo_root,
            "worktree_path": record.path,
            "agent_cwd": str(Path(record.path) / plan.subdir),
            "branch": record.branch,
            "index": step.index,
            "run_id": self._paths.root.name,
            "base_commit": record.base_commit,
            "agent": step.agent,
        }
        try:
            paths = run_hook(hook, facts, cwd=Path(record.path), within_s=plan.hook_timeout_s, ended=ended)
        except HookFailed as error:
            raise HookFailed(f"the setup hook {plan.setup_hook} {error}") from error
        if not untracked(record, paths):
            raise HookFailed(f"the setup hook {plan.setup_hook} named synthetic_paths that are tracked or lie outside")
        return paths

    def _undo(self, indices: Sequence[int], why: str) -> None:
        for index in indices:
            record = self._known(index)
            if record is None:
                continue
            try:
                roll_back(record)
                record = record.model_copy(update={"state": "failed", "reason": why})
            except (GitProblem, OSError) as error:
                left = f"{why} It could not be removed either: {_error_text(error)}. It is in {record.path}."
                record = record.model_copy(update={"state": "preserved", "reason": left})
            self._note(record)

    def _settle(self, index: int, keep: str) -> WorktreeRecord | None:
        record = self._known(index)
        if record is None:
            return None
        # Noting is a part of the work here: without it on record, nothing is removed.
        record = settle(record, self._paths.root, self._handoff.note, keep=keep, disk=self._disk)
        self._note(record)
        return record

    def _note(self, record: WorktreeRecord) -> None:
        try:
            self._handoff.note(record)
        except (Unreadable, OSError) as error:  # whoever looks later finds the record before, and the files
            print(f"the hand-off was not written: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _known(self, index: int) -> WorktreeRecord | None:
        try:
            return self._handoff.of(index)
        except Unreadable:
            return None


async def _to_the_end(work: Awaitable[T]) -> T:
    """Wait for the end of the work, whoever is cancelled meanwhile; then be cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains of it
        raise


def _error_text(error: Exception) -> str:
    return one_line(str(error), 500).rstrip(".")
