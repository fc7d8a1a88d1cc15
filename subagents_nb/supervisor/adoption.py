"""Take over the runs of a supervisor that died: watch their processes by descriptors that were opened, then verified.

They are not our children, so how they end can't be observed; that they end can. The record says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from subagents_nb.domain.judge import Ending
from subagents_nb.domain.records import ProcessRecord
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.lock import probe
from subagents_nb.store.reader import FileRuns, read_document
from subagents_nb.store.writer import RunWriter
from subagents_nb.supervisor.ending import judge_run
from subagents_nb.supervisor.identity import start_ticks
from subagents_nb.supervisor.lastresort import LastResort
from subagents_nb.supervisor.leftovers import end_leftovers, mark_of
from subagents_nb.supervisor.proof import is_proved, prove, read_candidate

_SCANNED = 500


class Adopted:
    """Runs that somebody else started. Empty where the platform has no process descriptors."""

    def __init__(self, home: StoreHome) -> None:
        self._home = home
        self._runs: dict[int, tuple[str, ProcessRecord]] = {}
        self._last_resort = LastResort()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def descriptors(self) -> list[int]:
        """Return the descriptors that become readable when a run's process ends."""
        return list(self._runs)

    def find(self) -> list[int]:
        """Look for live runs that nobody watches any more; return the new descriptors."""
        known = {run_id for run_id, _ in self._runs.values()}
        new = []
        for run_id in FileRuns(self._home).ids()[:_SCANNED]:
            if run_id not in known and (handle := self._adopt(run_id)) is not None:
                new.append(handle)
        return new

    def force(self) -> None:
        """End the runners that do not hear that they shall stop, each through the descriptor that proves who it is."""
        handles = {run_id: handle for handle, (run_id, _) in self._runs.items()}
        for run_id in self._last_resort.due({run_id: self._home.run(run_id) for run_id in handles}):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handles[run_id], signal.SIGKILL)

    def ended(self, handle: int) -> None:
        """Record that an adopted run's process has ended."""
        run_id, started = self._runs.pop(handle)
        os.close(handle)
        try:
            self._record(run_id, started)
        except Exception as error:  # noqa: BLE001 - one run's broken directory must not end the supervisor of others
            print(f"run {run_id}: its end was not recorded: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _adopt(self, run_id: str) -> int | None:
        paths = self._home.run(run_id)
        if probe(paths.lock) != "held":
            return None
        with contextlib.suppress(Unreadable, OSError, AttributeError):
            record = read_document(paths.process, ProcessRecord, run_id)
            if record.state != "pending" or record.pid is None or _is_alive(record.observer_pid):
                return None
            handle = os.pidfd_open(record.pid)
            if record.start_ticks is None or start_ticks(record.pid) != record.start_ticks:
                os.close(handle)
                return None
            adopted = record.model_copy(update={"observer_pid": os.getpid()})
            RunWriter(paths).process(adopted)
            self._runs[handle] = (run_id, adopted)
            return handle
        return None

    def _record(self, run_id: str, started: ProcessRecord) -> None:
        # Its leader is not ours to reap, so its group number may be anybody's by now: only marked processes are ended.
        left = end_leftovers(None, mark_of(run_id, started.token), since=started.start_ticks)
        snapshot = FileRuns(self._home).snapshot(run_id, whole=True)
        if snapshot.result is None and snapshot.verdict is None:
            judge_run(self._home, snapshot, ending=Ending(), judge="supervisor")
        paths = self._home.run(run_id)
        if is_proved(paths):
            return
        itself = snapshot.result is not None
        said = read_candidate(paths)
        proof = prove(began=True, ended_itself=itself, left=left, said=said, started=started)
        ended = {
            "state": "unknown",  # not our child: how it ended could not be seen
            "reason": "observer-unavailable",
            "candidate": proof.candidate,
            "observed_at": utc_now(),
            "ended_with_it": left.ended,
            "group_empty": left.empty,
        }
        RunWriter(paths).process(started.model_copy(update=ended))


def _is_alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        return start_ticks(pid) is not None
    except PermissionError:
        return True
