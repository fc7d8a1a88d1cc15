"""Write one run's documents. Each document has one writer; the methods say which."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.control import AppendedItems
from subagents_nb.domain.runs.exit_report import ExitReport, ProcessRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.reads import ReadsSoFar
from subagents_nb.domain.runs.records import RecoveryRecord, RunResult, RunStatus, StepRecord
from subagents_nb.errors import StoreError, Unreadable
from subagents_nb.store.files.codec import encode
from subagents_nb.store.files.disk import DISK, Disk
from subagents_nb.store.files.lock import hold
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.event_file import EventFile
from subagents_nb.store.runs.input_files import Content, write_inputs
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import Mailbox
from subagents_nb.store.runs.skill_files import SkillFiles, write_skills

MAX_READS_BYTES = 512 * 1024
_RESERVE_BYTES = 64 * 1024


def create_run(
    home: StoreHome,
    plan: LaunchPlan,
    recovery: RecoveryRecord,
    *,
    inputs: Sequence[Content] = (),
    sessions: Mapping[str, bytes] = MappingProxyType({}),
    skills: Mapping[str, SkillFiles] = MappingProxyType({}),
    disk: Disk = DISK,
    launching: bool = False,
) -> RunWriter:
    """Make the directory of a new run with its plan and recovery record; a failure leaves nothing behind.

    With `launching`, hold the launcher's lock in it until `launched`: a plan without a status belongs to somebody.

    Raises:
        StoreError: the directory can't be made or written.
    """
    paths = home.run(plan.run_id)
    writer = RunWriter(paths, disk=disk)
    try:
        disk.make_dir(paths.root)
        try:
            if launching:
                writer.start_launch()
            disk.make_dir(paths.control)
            disk.make_dir(paths.answers)
            disk.make_dir(paths.questions)
            disk.make_dir(paths.root / "steps")
            for step in plan.steps:
                disk.make_dir(paths.step(step.index))
            write_inputs(paths, inputs, disk=disk)
            write_skills(paths, skills, disk=disk)
            write_sessions(paths, sessions, disk=disk)
            # The first status follows at once and makes these names durable with its own.
            disk.create_once(paths.plan, encode(plan), entry=False)
            disk.create_once(paths.recovery, encode(recovery), durable=False, entry=False)
        except BaseException:
            writer.launched()
            discard_run(paths)
            raise
    except OSError as error:
        raise StoreError(f"The run could not be stored below {home.root}: {error.strerror}.") from error
    return writer


def write_sessions(paths: RunPaths, sessions: Mapping[str, bytes], *, disk: Disk = DISK) -> None:
    """Copy conversations into a run, each named by its hash; one that is there is the same.

    Raises:
        OSError: there is no room.
    """
    for sha256, data in sessions.items():
        with contextlib.suppress(FileExistsError):
            disk.make_dir(paths.session(sha256).parent)
        disk.create_once(paths.session(sha256), data, durable=False)


def discard_run(paths: RunPaths) -> None:
    """Remove the directory of a launch that was rolled back; renamed first, so that nobody writes into it halfway."""
    away = paths.root.with_name(f".gone-{paths.root.name}")
    with contextlib.suppress(OSError):
        os.replace(paths.root, away)
    shutil.rmtree(away, ignore_errors=True)


class RunWriter:
    """The writing half of one run directory."""

    def __init__(self, paths: RunPaths, *, disk: Disk = DISK) -> None:
        self.paths = paths
        self._disk = disk
        self._launching: int | None = None
        self.mail = Mailbox(paths, disk=disk)
        self.events = EventFile(paths.events, disk=disk)

    def start_launch(self) -> None:
        """Take the launcher's lock, before there is a plan: the launcher."""
        self._launching = hold(self.paths.launching)

    def launched(self) -> None:
        """Let the launcher's lock go: a status says who owns the run, or the launch was rolled back."""
        if self._launching is None:
            return
        with contextlib.suppress(OSError):
            self._disk.remove(self.paths.launching)
        os.close(self._launching)
        self._launching = None

    def status(self, status: RunStatus, *, milestone: bool) -> None:
        """Replace the status: the launcher the first, the runner all others. Only milestones reach the device."""
        self._disk.replace(self.paths.status, encode(status), durable=milestone)

    def reads(self, so_far: ReadsSoFar) -> None:
        """Replace what the run has read so far: the runner. What is too long is not written; the one before stays."""
        data = encode(so_far)
        if len(data) <= MAX_READS_BYTES:
            self._disk.replace(self.paths.reads, data, durable=False)

    def process(self, record: ProcessRecord) -> None:
        """Replace the process record: the process that started the runner, or who takes over when that one is gone."""
        self._disk.replace(self.paths.process, encode(record), durable=record.state != "pending")

    def exit_report(self, candidate: ExitReport) -> bool:
        """Create the account of the run's processes: the runner, before its result, which brings it to the device."""
        return self._disk.create_once(self.paths.candidate, encode(candidate), durable=False, entry=False)

    def result(self, result: RunResult) -> bool:
        """Create the result: the runner. Return False if there was one."""
        self._release_reserve()
        return self._disk.create_once(self.paths.result, encode(result))

    def add_step(self, index: int) -> None:
        """Make the directory of a step that the plan does not have: the runner."""
        with contextlib.suppress(FileExistsError):
            self._disk.make_dir(self.paths.step(index))

    def appended(self, record: AppendedItems) -> None:
        """Replace what was appended to the chain: the runner, before it says that it takes it in."""
        self._disk.replace(self.paths.appended, encode(record), durable=True)

    def step_result(self, record: StepRecord) -> bool:
        """Create the record of a step that ended while its run goes on: the runner. Return False if there was one."""
        path = self.paths.step(record.result.index) / "result.json"
        return self._disk.create_once(path, encode(record), entry=False)

    def verdict(self, verdict: Verdict) -> bool:
        """Create the verdict: whoever proved the runner dead first. Return False if there was one.

        One that a power cut emptied counts for nothing; it is put aside.
        """
        if self._disk.create_once(self.paths.verdict, encode(verdict)):
            return True
        try:
            read_document(self.paths.verdict, Verdict, verdict.run_id, disk=self._disk)
        except Unreadable as error:
            if error.kind != "empty":
                return False
            with contextlib.suppress(FileNotFoundError):
                self._disk.rename(self.paths.verdict, self.paths.verdict.with_suffix(".bad"))
            return self._disk.create_once(self.paths.verdict, encode(verdict))
        return False

    def reserve(self) -> None:
        """Set some space aside that makes room for the result on a full disk."""
        with contextlib.suppress(OSError):
            self._disk.replace(self._reserve_path, b"\0" * _RESERVE_BYTES, durable=False)

    @property
    def _reserve_path(self) -> Path:
        return self.paths.root / ".reserve"

    def _release_reserve(self) -> None:
        with contextlib.suppress(OSError):
            self._disk.remove(self._reserve_path)
