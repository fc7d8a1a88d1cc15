"""Take over the runs of a watcher that died: those that live are watched on, for those that ended it is written down.

The living are watched by descriptors that were opened, then verified. They are not our children, so how they end can't
be observed; that they end can, see pidfd_open(2). The record says so.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections import deque
from dataclasses import dataclass, field

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.errors import Unreadable
from subagents_nb.signals import KILL, signal_handle
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns, read_document
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.supervisor.ends.kill_escalation import KillEscalation
from subagents_nb.supervisor.ends.termination import clear_up, record_end, watcher
from subagents_nb.supervisor.processes.backoff import Backoff
from subagents_nb.supervisor.processes.identity import is_zombie, start_ticks
from subagents_nb.supervisor.processes.liveness import is_earlier_boot, is_here, is_watched
from subagents_nb.supervisor.processes.orphans import Orphans

_AT_ONCE = 200  # runs looked at in one go: some ten milliseconds
_PAUSE_S, _ROUND_S = 1.0, 60.0


@dataclass(slots=True)
class _Late:
    """A run that has ended without its watcher and is not recorded yet."""

    started: ProcessRecord
    backoff: Backoff = field(default_factory=Backoff)
    left: Orphans | None = None


class Reattached:
    """Runs that somebody else started. Nobody is watched where the platform has no process descriptors."""

    def __init__(self, home: StoreHome) -> None:
        self._home = home
        self._runs: dict[int, tuple[str, ProcessRecord]] = {}
        self._late: dict[str, _Late] = {}
        self._escalation = KillEscalation()
        self._settled: set[str] = set()  # of which nothing more has to be written
        self._ahead: deque[str] = deque()
        self._next = 0.0

    def __len__(self) -> int:
        return len(self._runs) + len(self._late)

    def find(self) -> list[int]:
        """Look for runs that nobody watches any more; return the descriptors of those that live.

        To be called again and again: it looks at the newest two hundred first, at the others in turn, and once a minute
        anew at those whose end is not proved.
        """
        now = time.monotonic()
        if now < self._next:
            return []
        if not self._ahead:
            with contextlib.suppress(OSError):
                self._ahead.extend(run_id for run_id in FileRuns(self._home).ids() if run_id not in self._settled)
        known = {run_id for run_id, _ in self._runs.values()} | self._late.keys()
        new = []
        for _ in range(min(_AT_ONCE, len(self._ahead))):
            run_id = self._ahead.popleft()
            if run_id not in known and (handle := self._consider(run_id)) is not None:
                new.append(handle)
        self._next = now + (_PAUSE_S if self._ahead else _ROUND_S)
        self.settle()
        return new

    def force(self) -> None:
        """End the runners that do not hear that they shall stop, each through the descriptor that proves who it is."""
        handles = {run_id: handle for handle, (run_id, _) in self._runs.items()}
        for run_id in self._escalation.due({run_id: self._home.run(run_id) for run_id in handles}):
            signal_handle(handles[run_id], KILL)

    def ended(self, handle: int) -> None:
        """Record that an adopted run's process has ended, now or, if the disk refuses, as soon as it can be."""
        run_id, started = self._runs.pop(handle)
        os.close(handle)
        self._late[run_id] = _Late(started)
        self.settle()

    def settle(self) -> None:
        """Write down the ends that nobody saw, as far as the disk takes them now."""
        for run_id, late in list(self._late.items()):
            if not late.backoff.due:
                continue
            wrong = late.backoff.tried(functools.partial(self._record, run_id, late))
            if wrong:
                print(f"run {run_id}: its end was not recorded: {wrong}", file=sys.stderr, flush=True)  # noqa: T201
            if wrong is None:
                del self._late[run_id]
                self._settled.add(run_id)

    def _consider(self, run_id: str) -> int | None:
        """Return the descriptor of a run that lives and is ours to watch from now on; note one that has ended."""
        paths = self._home.run(run_id)
        try:
            record = read_document(paths.process, ProcessRecord, run_id)
        except Unreadable as error:
            if error.kind == "missing" and FileRuns(self._home).has_terminal_record(run_id):
                self._settled.add(run_id)  # it never had a process
            return None
        if record.state != "pending" or paths.imported.exists():
            self._settled.add(run_id)
            return None
        if is_watched(record) or not self._is_ours_to_judge(record):
            return None
        if probe(paths.lock) == "held":
            return self._adopt(run_id, record)
        if not _may_live(record):
            self._late[run_id] = _Late(record)
        return None

    def _is_ours_to_judge(self, record: ProcessRecord) -> bool:
        """Say whether a record is of the launch that the plan is of, made where pids mean what they do here."""
        try:
            plan = read_document(self._home.run(record.run_id).plan, LaunchPlan, record.run_id)
        except Unreadable:
            return False
        place = record.observer
        if place is None:  # written by a version that noted less
            status = FileRuns(self._home).snapshot(record.run_id).status
            place = status.runner if status is not None else None
        return plan.token == record.token and place is not None and (is_here(place) or is_earlier_boot(place))

    def _adopt(self, run_id: str, record: ProcessRecord) -> int | None:
        with contextlib.suppress(OSError, AttributeError):
            if record.pid is None or record.start_ticks is None:
                return None
            handle = os.pidfd_open(record.pid)
            try:
                if start_ticks(record.pid) != record.start_ticks:
                    raise ProcessLookupError
                own = {"observer_pid": os.getpid(), "observer": watcher(record.token)}
                adopted = record.model_copy(update=own)
                RunWriter(self._home.run(run_id)).process(adopted)
            except OSError:
                os.close(handle)
                raise
            self._runs[handle] = (run_id, adopted)
            return handle
        return None

    def _record(self, run_id: str, late: _Late) -> None:
        if late.left is None:
            late.left = left_by(self._home, run_id, late.started)
        record_end(
            self._home,
            run_id,
            started=late.started,
            orphans=late.left,
            judge="supervisor",
            unseen="observer-unavailable",
        )


def left_by(home: StoreHome, run_id: str, started: ProcessRecord) -> Orphans:
    """End what a run left whose watcher is gone too; nothing where pids mean something else than they did to it.

    Raises:
        OSError: out of descriptors, say; to be tried again.
        Unreadable: likewise.
    """
    if started.observer is not None and is_earlier_boot(started.observer):
        return Orphans(empty=True)
    if started.observer is not None and not is_here(started.observer):
        return Orphans()
    # Its leader is not ours to reap, so its group number may be anybody's by now.
    return clear_up(home, run_id, started, leader=None)


def _may_live(record: ProcessRecord) -> bool:
    """Say whether a runner whose lock is not held may live all the same: it has not taken it yet, or can't be seen."""
    if record.observer is not None and is_earlier_boot(record.observer):
        return False
    if record.pid is None:
        return False
    try:
        ticks = start_ticks(record.pid)
    except PermissionError:
        return True
    if ticks is None or is_zombie(record.pid):
        return False
    return record.start_ticks is None or ticks == record.start_ticks
