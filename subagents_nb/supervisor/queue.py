"""Runs that wait for a free place, started in order, with no kernel alive. Their environment is in memory only."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from dataclasses import dataclass

from subagents_nb.domain.records import Identity, RunStatus, Verdict
from subagents_nb.domain.states import RunState
from subagents_nb.errors import Unreadable
from subagents_nb.store.capacity import take_place
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.reader import FileRuns, read_document
from subagents_nb.store.writer import RunWriter
from subagents_nb.supervisor import wire
from subagents_nb.supervisor.ending import stop_request_of
from subagents_nb.supervisor.identity import boot_id, host_id, pid_namespace, start_ticks
from subagents_nb.supervisor.nursery import Birth, Nursery


@dataclass(frozen=True, slots=True)
class Waiting:
    """One run in the queue and the limit that its launcher goes by."""

    birth: Birth
    limit: int


class Queue:
    """First come, first served, among the runs of this supervisor."""

    def __init__(self, home: StoreHome, nursery: Nursery) -> None:
        self._home = home
        self._nursery = nursery
        self._runs: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, waiting: Waiting) -> None:
        """Put a run at the end."""
        self._runs.append(waiting)

    def step(self) -> None:
        """Drop what was stopped while it waited, and start as many as there are places."""
        self._runs = deque(waiting for waiting in self._runs if not self._is_over(waiting.birth))
        while self._runs:
            place = take_place(self._home, self._runs[0].limit)
            if place is None:
                return
            try:
                self._start(self._runs.popleft().birth, place)
            finally:
                os.close(place)

    def _is_over(self, birth: Birth) -> bool:
        snapshot = FileRuns(self._home).snapshot(birth.run_id)
        if snapshot.state is not RunState.QUEUED:
            return True
        asked = stop_request_of(self._home.run(birth.run_id).control)
        if asked is None:
            return False
        self._verdict(birth, RunState.STOPPED, f"Stopped before it began{f': {asked}' if asked else ''}.")
        return True

    def _start(self, birth: Birth, place: int) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                pid = self._nursery.start(birth, channel=theirs.fileno(), place=place)
                self._own(birth, pid)
                ours.sendall(f"{wire.PROCEED} {birth.token}\n".encode())
            except (OSError, RuntimeError, Unreadable) as error:
                # The runner, if there is one, sees its channel close and ends without having begun.
                self._verdict(birth, RunState.FAILED, f"It could not be started when its turn came: {error}.")

    def _own(self, birth: Birth, pid: int) -> None:
        """Write down who carries the run out, as its launcher would have."""
        paths = self._home.run(birth.run_id)
        queued = read_document(paths.status, RunStatus, birth.run_id)
        identity = Identity(
            pid=pid,
            start_ticks=start_ticks(pid),
            boot_id=boot_id(),
            pid_namespace=pid_namespace(),
            host=host_id(),
            token=birth.token,
        )
        changed = {"runner": identity, "queue_keeper": None, "updated_at": utc_now(), "seq": queued.seq + 1}
        RunWriter(paths).status(queued.model_copy(update=changed), milestone=True)

    def _verdict(self, birth: Birth, state: RunState, message: str) -> None:
        stopped = state is RunState.STOPPED
        verdict = {
            "run_id": birth.run_id,
            "state": state,
            "reason": "stopped" if stopped else "startup",
            "actor": "person" if stopped else "self",
            "message": message,
            "judged_at": utc_now(),
            "judged_by": "supervisor",
        }
        with contextlib.suppress(OSError):
            RunWriter(self._home.run(birth.run_id)).verdict(Verdict.model_validate(verdict))
