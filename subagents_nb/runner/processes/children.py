"""The processes that this runner started, and how each ended: its candidate for the proof that nothing is left of it.

One account for the whole process. Whoever starts a process tells it here, and how it ended once that was seen. Who is
open stands on disk too, for whoever clears up after a runner that was killed. What a command leaves behind falls to the
runner, counts as its child from then on and is ended with the run.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.runs.exit_report import ChildEnd, ExitReport
from subagents_nb.prctl import adopt_orphans
from subagents_nb.store.processes.childlog import ChildLog
from subagents_nb.store.processes.process_list import (
    Process,
    end,
    end_orphans,
    everyone,
    look,
    mark_in,
    own_children,
    reap,
)

KEPT = 200
_UNREAPED_S = 1.0  # whoever started a child waits for it within milliseconds; who waits longer was left behind
_STARTING_S = 0.03  # so long may a child be there before it is noted
_ROUNDS = 20
_HUNT_S = 2.0


class Children:
    """Whom we started. Rows of children that were seen to end are dropped beyond the last two hundred, and counted."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: dict[int, ChildEnd] = {}
        self._ended: list[ChildEnd] = []
        self._dropped = 0
        self._asked: dict[int, Callable[[], int | None]] = {}
        self._log: ChildLog | None = None
        self._spare: Callable[[Process], bool] = lambda _: False
        self._fallen: dict[int, Process] = {}  # open ones that we did not start
        self._unreaped: dict[int, float] = {}

    def keep(self, log: ChildLog, *, spare: Callable[[Process], bool] = lambda _: False) -> None:
        """Write down from now on who is open, and have what they leave behind fall to this process.

        `spare` says who is proved to be no run's or another's, and may outlive this one.
        """
        self._log = log
        self._spare = spare
        adopt_orphans()

    def began(self, pid: int, *, what: str, poll: Callable[[], int | None] | None = None) -> None:
        """Note a child that leads a session of its own. `poll`, without waiting, returns its exit code or None."""
        row = ChildEnd.model_validate({"pid": pid, "start_ticks": _start_ticks(pid), "group": pid, "what": what})
        with self._guard:
            self._note(row)
            if poll is not None:
                self._asked[pid] = poll

    def ended(self, pid: int, code: int | None, *, group_empty: bool | None) -> None:
        """Note how a child ended: a code below zero is a signal, None means that it was not seen."""
        with self._guard:
            if pid not in self._open or (code is None and group_empty is None):
                return
            if self._log is not None:
                with contextlib.suppress(OSError):
                    self._take_over()
            self._close(pid, code, group_empty)

    def end_orphans(self) -> None:
        """End what commands left behind, when the run is over. Who is still open by our own doing is left to others."""
        if self._log is None or not (self._open or self._ended):
            return
        with contextlib.suppress(OSError):
            for _ in range(_ROUNDS):
                with self._guard:
                    fallen = list(self._fallen.values())
                    new = [] if fallen else self._orphans()
                if new:
                    time.sleep(_STARTING_S)
                ended = [end(process) for process in fallen if not self._spare(process)]
                with self._guard:
                    self._take_over(only={(process.pid, process.ticks) for process in new})
                if not new and not any(ended):
                    break
            if end_orphans(self._not_started_by_us, self._is_spared, within_s=_HUNT_S):
                with self._guard:
                    self._take_over(only=set())

    def exit_report(self, run_id: str, token: str) -> ExitReport | None:
        """Return the account as it stands; None if there never was a child."""
        for pid, poll in list(self._asked.items()):
            code = poll()
            if code is not None:
                self.ended(pid, code, group_empty=None)
        with self._guard:
            rows = (*self._ended, *self._open.values())
            if not rows:
                return None
            return ExitReport(
                run_id=run_id,
                token=token,
                pid=os.getpid(),
                group=os.getpgrp() if hasattr(os, "getpgrp") else None,
                group_empty=_is_last_of_group(),
                children=rows,
                dropped=self._dropped,
            )

    def _note(self, row: ChildEnd) -> None:
        self._open[row.pid] = row
        self._fallen.pop(row.pid, None)
        self._asked.pop(row.pid, None)  # the pid of a child that ended may be another's now
        if self._log is not None:
            self._log.began(row)

    def _close(self, pid: int, code: int | None, group_empty: bool | None) -> None:
        row = self._open.pop(pid)
        self._asked.pop(pid, None)
        self._fallen.pop(pid, None)
        if self._log is not None:
            self._log.ended(pid)
        how = "unknown" if code is None else "exited" if code >= 0 else "killed"
        seen = {"how": how, "code": code, "seen_by": "nobody" if code is None else "runner"}
        self._ended.append(ChildEnd.model_validate({**row.model_dump(), **seen, "group_empty": group_empty}))
        if len(self._ended) > KEPT:
            del self._ended[0]
            self._dropped += 1

    def _take_over(self, only: set[tuple[int, int]] | None = None) -> None:
        """Note as children those that fell to us and still run, `only` these pids and ticks; reap those that ended."""
        for process in self._orphans():
            if only is None or (process.pid, process.ticks) in only:
                row = {"pid": process.pid, "start_ticks": process.ticks, "group": process.group}
                self._note(ChildEnd.model_validate(row))
                self._fallen[process.pid] = process
        for pid in list(self._fallen):
            if (code := reap(pid)) is not None:
                self._close(pid, code, None)
        now = time.monotonic()
        ended = [process.pid for process in self._strange(own_children() - self._open.keys()) if process.ended]
        self._unreaped = {pid: self._unreaped.get(pid, now) for pid in ended}
        for pid, since in self._unreaped.items():
            if now - since > _UNREAPED_S:
                reap(pid)

    def _orphans(self) -> list[Process]:
        """Return the living that fell to us and are not noted, but for those that are proved to be another's."""
        strange = self._strange(own_children() - self._open.keys())
        return [process for process in strange if not process.ended and not self._is_spared(process)]

    def _not_started_by_us(self) -> set[int]:
        return own_children() - (self._open.keys() - self._fallen.keys())

    def _is_spared(self, process: Process) -> bool:
        """Say whether it may outlive the run, or shares our session: who called for such a one waits for it too."""
        if process.session == os.getsid(0):
            return True
        return mark_in(process.pid) != os.environ.get(RUN_MARK) and self._spare(process)

    @staticmethod
    def _strange(pids: set[int]) -> list[Process]:
        """Return those that began a session of their own. Who shares ours is waited for by who called it."""
        own = os.getsid(0)
        return [process for process in map(look, pids) if process is not None and process.session != own]


def _start_ticks(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        process = look(pid)
        return process.ticks if process is not None else None
    return None


def _is_last_of_group() -> bool | None:
    """Say whether this process is the last of its group; None where that can't be seen."""
    try:
        seen = everyone()
    except OSError:  # out of descriptors, say, or no Linux
        return None
    if not seen:
        return None
    own, group = os.getpid(), os.getpgrp()
    return not any(process.group == group and not process.ended for process in seen.values() if process.pid != own)


CHILDREN = Children()
