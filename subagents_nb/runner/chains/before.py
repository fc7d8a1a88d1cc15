"""The run that this one goes on from: its sessions, and of a whole chain what its steps came to."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from subagents_nb.domain.plans.plan import GroupItem, LaunchPlan, PlanItem, StepItem, StepPlan
from subagents_nb.domain.plans.resumed import Taken
from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.runs.records import SavedOutput, StepRecord, StepResult
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.runner.workspace.step_files import FILES, PROGRESS, WROTE
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document

SESSION = "session.json"
BEFORE = "before.json"  # the session that a step of a chain goes on from, in its own directory
# What a step leaves beside its result; copied, so that this run needs the one before no more.
_KEPT = (SESSION, "output.txt", "changes.patch", "python.ipynb")


class Before:
    """What a run takes over from the one before; nothing, if it begins by itself."""

    def __init__(self, plan: LaunchPlan, paths: RunPaths, *, disk: Disk = DISK) -> None:
        self._plan = plan
        self._paths = paths
        self._disk = disk
        resumes = plan.resumes
        self._source = None if resumes is None else RunPaths(paths.root.parent / resumes.run_id)
        self._chain = None if resumes is None else resumes.chain
        self._taken: dict[int, Taken] = {}
        for place, item in enumerate(plan.items):
            self.expect(place, _steps_of(item))

    @property
    def admitted(self) -> int:
        """Return how many steps the run before had claimed of its fan-out budget."""
        return 0 if self._chain is None else self._chain.admitted

    def begun(self, place: int, count: int) -> bool:
        """Say whether the item in this place had begun with so many steps in the run before: they are admitted."""
        return self._chain is not None and place < len(self._chain.stages) and len(self._chain.stages[place]) == count

    def expect(self, place: int, indices: Sequence[int]) -> None:
        """Say which numbers the steps of an item have here: what was taken of those before is by their order."""
        if self._chain is not None and place < len(self._chain.stages):
            taken = self._chain.stages[place]
            if len(taken) == len(indices):
                self._taken |= zip(indices, taken, strict=True)

    def stands(self, index: int) -> bool:
        """Say whether a step is taken over as it ended."""
        return index in self._taken and self._taken[index].how == "stands"

    def resume_text(self, index: int) -> str | None:
        """Return what a step is told that goes on from its session; None for one that does not."""
        taken = self._taken.get(index)
        return self._chain.text if self._chain is not None and taken is not None and taken.how == "goes-on" else None

    def limited(self, step: StepPlan) -> StepPlan:
        """Return a step with what was left to it of its limits."""
        taken = self._taken.get(step.index)
        if taken is None:
            return step
        return step.model_copy(update=taken.model_dump(exclude={"step", "how"}, exclude_none=True))

    def number(self, index: int) -> int | None:
        """Return the number that a step had which goes on; None if it begins by itself."""
        if self._chain is not None:
            return self._taken[index].step if self.resume_text(index) is not None else None
        return None if self._plan.resumes is None else self._plan.resumes.step

    def history(self, step: StepPlan) -> Path | None:
        """Return the session that a step goes on from: of the run before, else the one it was planned with."""
        number = self.number(step.index)
        if self._source is not None and number is not None:
            mine = self._chain is not None
            return self._paths.step(step.index) / BEFORE if mine else self._source.step(number) / SESSION
        return None if step.session is None else self._paths.session(step.session.sha256)

    def result(self, index: int) -> StepResult:
        """Return what a step that stands came to, with all that it left beside its result; nothing is paid again.

        Raises:
            StoreError: it is not there any more.
        """
        number, source = self._taken[index].step, self._source
        try:
            if source is None:
                raise Unreadable("there is no run before", kind="missing")
            stored = read_document(source.step(number) / "result.json", StepRecord, source.root.name).result
            self._copy(number, index, _KEPT)
            text, saved = self._bring_output(source, stored, index)
        except (Unreadable, OSError) as error:
            raise StoreError(f"What steps[{number}] came to in the run before can't be taken over: {error}.") from error
        there = f"steps/{index}/output.txt"
        update = {
            "index": index,
            "text": text,
            "saved": saved,
            "usage": Usage(),
            "started_s": None,
            "ended_s": None,
            "text_file": None if stored.text_file is None else there,
            "worktree": None if stored.worktree is None else moved_tree(stored.worktree, index),
            "carried_from": stored.carried_from or source.root.name,
        }
        return stored.model_copy(update=update)

    def _bring_output(self, source: RunPaths, whole: StepResult, index: int) -> tuple[str, SavedOutput | None]:
        """Copy an output that lies with the run before; return the step's text, which may name the place, and where."""
        saved = whole.saved
        if saved is None or saved.place != "run" or saved.error is not None:
            return whole.text, saved
        top, _, rest = saved.path.partition("/")
        number, slash, name = rest.partition("/")
        # Each step has a folder of its own, by its number.
        path = f"{top}/{index}/{name}" if slash and number == str(whole.index) else saved.path
        self._bring_file(source.root / saved.path, path)
        text = whole.text.replace(str(source.root / saved.path), str(self._paths.root / path))
        return text, saved.model_copy(update={"path": path})

    def bring(self, step: StepPlan) -> None:
        """Copy what a step needs that goes on: its session, and what it had of its own files.

        They are here from the start, whatever becomes of this run.
        """
        number, source = self.number(step.index), self._source
        if number is None or source is None:
            return
        try:
            if self._chain is not None and not self._copy(number, step.index, (SESSION,), as_=BEFORE):
                self._copy(number, step.index, (BEFORE,))
        except (Unreadable, OSError) as error:  # the engine says that there is none, for the step
            print(f"the session of steps[{number}] was not copied: {error}", file=sys.stderr, flush=True)  # noqa: T201
        try:
            if self._chain is not None:
                self._copy(number, step.index, (WROTE,))
            if step.output is not None and not step.output.explicit:
                had, has = f"{FILES}/{number}/{step.output.path}", f"{FILES}/{step.index}/{step.output.path}"
                self._bring_own(source, had, has)
            if step.progress:
                self._bring_own(source, f"{FILES}/{PROGRESS}", f"{FILES}/{PROGRESS}")
        except (Unreadable, OSError) as error:  # it begins them anew
            print(f"files of steps[{number}] were not copied: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _bring_own(self, source: RunPaths, had: str, has: str) -> None:
        if (source.root / had).is_file():
            self._bring_file(source.root / had, has)

    def _bring_file(self, file: Path, path: str) -> None:
        """Copy a file into this run's folder, at `path`."""
        folder = self._paths.root
        for part in PurePosixPath(path).parent.parts:
            folder /= part
            with contextlib.suppress(FileExistsError):
                self._disk.make_dir(folder)
        with self._disk.open_reading(file) as opened:
            self._disk.create_once(self._paths.root / path, opened.read(), durable=False, entry=False)

    def _copy(self, number: int, index: int, names: Iterable[str], *, as_: str | None = None) -> bool:
        """Copy files of a step, those that are there; say whether there was any."""
        copied, source = False, self._source
        if source is None:
            return copied
        for name in names:
            try:
                file = self._disk.open_reading(source.step(number) / name)
            except Unreadable as error:
                if error.kind == "missing":
                    continue
                raise
            with file:
                data = file.read()
            copied = self._disk.create_once(self._paths.step(index) / (as_ or name), data, durable=False, entry=False)
        return copied


def moved_tree(record: WorktreeRecord, index: int) -> WorktreeRecord | None:
    """Return the record of a captured tree as that of another step; None if its tree is still there to be looked at."""
    if record.state != "removed" or not record.captured:
        return None
    patch = None if record.patch is None else f"steps/{index}/changes.patch"
    return record.model_copy(update={"step": index, "patch": patch})


def _steps_of(item: PlanItem) -> tuple[int, ...]:
    match item:
        case StepItem():
            return (item.step,)
        case GroupItem():
            return item.steps
        case _:
            return ()
