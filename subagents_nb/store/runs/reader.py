"""Read runs. Reading writes nothing, repairs nothing and never raises through a list."""

from __future__ import annotations

import contextlib
import gc
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from subagents_nb.domain.agents.attention import UNHEARD_S
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.questions import OpenQuestion, Question
from subagents_nb.domain.runs.records import RunResult, RunStatus
from subagents_nb.domain.runs.snapshot import Damage, Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.tree.child_rows import settled
from subagents_nb.domain.values.base import Document
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import age_s
from subagents_nb.store.files.codec import decode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.inside import names_in
from subagents_nb.store.layout import StoreHome

D = TypeVar("D", bound=Document)
_BATCH = 500
_MUCH = 9_000  # objects; a run that was read holds twenty


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector, which would go through everything read so far again and again.

    That costs a tenth of the time of 10,000 runs in a kernel that holds much. Whichever of several threads leaves first
    lets it go on, and none leaves it off that found it on.

    Nor does it go through all of it once more right afterwards: where that was much it counts as old, as if it had been
    gone through. Not where it was little: who does that often would put full collections off for ever.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > _MUCH and not gc.get_freeze_count():  # else somebody means to keep what is frozen
                gc.freeze()
                gc.unfreeze()  # which puts it into the oldest generation
            gc.enable()


class FileRuns:
    """The runs below one store home."""

    def __init__(self, home: StoreHome, *, disk: Disk = DISK) -> None:
        self.home = home
        self._disk = disk

    def ids(self) -> list[str]:
        """Return all run ids, newest first. A missing store has none."""
        try:
            names = [name for name in os.listdir(self.home.runs) if is_run_id(name)]
        except FileNotFoundError:
            return []
        names.sort(reverse=True)
        return names

    def snapshot(self, run_id: str, *, whole: bool = False) -> Snapshot:
        """Read one run. With a result in place nothing else is read unless `whole` asks for it, or it is paused.

        The runs below one that has ended are as they say themselves, where it did not live to see their ends.

        Raises:
            UnknownRun: the text is no run id.
        """
        found = self._documents(run_id, whole=whole)
        head = found.head
        if head is None or not found.ended or all(row.state.ended for row in head.tree):
            return found
        rows = tuple(row if row.state.ended else self._settled(row) for row in head.tree)
        changed = head.model_copy(update={"tree": rows})
        return found.model_copy(update={"status" if found.result is None else "result": changed})

    def _settled(self, row: TreeRow) -> TreeRow:
        return settled(row, self._documents(row.run_id)) if is_run_id(row.run_id) else row

    def _documents(self, run_id: str, *, whole: bool = False) -> Snapshot:
        folder = self.home.run_folder(run_id)
        damage: list[Damage] = []
        result = self._read(folder, "result.json", RunResult, run_id, damage)
        verdict = status = plan = process = None
        unheard_s = 0.0
        if result is None or whole or result.state is RunState.PAUSED:
            verdict = self._read(folder, "verdict.json", Verdict, run_id, damage)
        if result is None or whole:
            status = self._read(folder, "status.json", RunStatus, run_id, damage)
            if status is not None and result is None and verdict is None and status.state is RunState.RUNNING:
                status = self._with_questions(folder, status)
                silent_s = age_s(status.updated_at)
                unheard_s = silent_s if silent_s >= UNHEARD_S else 0.0  # two readings of a healthy run are alike
        if whole or (result is None and status is None):
            plan = self._read(folder, "plan.json", LaunchPlan, run_id, damage)
        if whole:
            process = self._read(folder, "process.json", ProcessRecord, run_id, damage)
        if result is None and status is None and plan is None and not damage:
            damage.append(self._nothing(folder))
        return Snapshot.model_construct(  # its parts are validated already
            run_id=run_id,
            plan=plan,
            status=status,
            result=result,
            verdict=verdict,
            process=process,
            damage=tuple(damage),
            unheard_s=unheard_s,
        )

    def has_terminal_record(self, run_id: str) -> bool:
        """Say, without reading, whether a run has a result or a verdict. False: only its documents can tell.

        Raises:
            UnknownRun: the text is no run id.
        """
        return self.end_written_ns(run_id) > 0

    def end_written_ns(self, run_id: str) -> int:
        """Say, without reading, when a run's result or verdict was written, by the clock of the disk; 0: there is none.

        Raises:
            UnknownRun: the text is no run id.
        """
        folder = self.home.run_folder(run_id)
        ends = (_filled_ns(f"{folder}{os.sep}{name}") for name in ("result.json", "verdict.json"))
        return next(filter(None, ends), 0)

    def all(self) -> Iterator[Snapshot]:
        """Read every run, newest first."""
        ids = self.ids()
        for start in range(0, len(ids), _BATCH):
            with uncollected():
                batch = [self.snapshot(run_id) for run_id in ids[start : start + _BATCH]]
            yield from batch

    def _read(self, folder: str, name: str, kind: type[D], run_id: str, damage: list[Damage]) -> D | None:
        try:
            return decode(self._disk.read(f"{folder}{os.sep}{name}"), kind, run_id)
        except Unreadable as error:
            if error.kind != "missing":
                damage.append(Damage(document=name, kind=error.kind, message=str(error)))
            return None

    def _with_questions(self, folder: str, status: RunStatus) -> RunStatus:
        """Return the status with the questions that wait by their files, which the runner's own word follows later."""
        directory = f"{folder}{os.sep}questions"
        try:
            names = set(names_in(directory))
        except OSError:
            return status
        question_ids = {name.removesuffix(".json") for name in names if name.endswith(".json") and name[0] == "q"}
        waiting = {one for one in question_ids if not one.endswith(".reply") and f"{one}.reply" not in question_ids}
        shown = {question.question_id: question for question in status.questions}
        if waiting == shown.keys():
            return status
        open_questions = [question for one, question in shown.items() if one in waiting]
        for one in waiting - shown.keys():
            with contextlib.suppress(Unreadable):
                path = f"{directory}{os.sep}{one}.json"
                question = decode(self._disk.read(path), Question, status.run_id)
                fields = question.model_dump(include=set(OpenQuestion.model_fields))
                open_questions.append(OpenQuestion.model_validate(fields))
        open_questions.sort(key=lambda question: question.asked_at)
        return status.model_copy(update={"questions": tuple(open_questions)})

    @staticmethod
    def _nothing(folder: str) -> Damage:
        exists = os.path.isdir(folder)
        message = "the directory holds no document of a run" if exists else "the run's directory is gone"
        return Damage(document="run", kind="missing", message=message)


def _filled_ns(path: str) -> int:
    try:
        info = os.lstat(path)
    except OSError:
        return 0
    return info.st_mtime_ns if stat.S_ISREG(info.st_mode) and info.st_size > 0 else 0


def read_document(path: Path, kind: type[D], run_id: str, *, disk: Disk = DISK) -> D:
    """Read one document.

    Raises:
        Unreadable: with the reason.
    """
    return decode(disk.read(path), kind, run_id)


def read_tail(path: Path, limit: int = 4000) -> str:
    """Return the last `limit` bytes of a log as text; nothing if it can't be read."""
    try:
        with DISK.open_reading(path) as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - limit))
            return log.read(limit).decode("utf-8", "replace").strip()
    except (OSError, Unreadable):
        return ""
