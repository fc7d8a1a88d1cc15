"""The last resort against a runner that was asked to stop and does not even hear it: frozen, stuck, never got going.

A runner answers within a tenth of a second and ends itself by force after its grace. One that answers nothing can only
be ended from outside, and only by who holds proof of its identity: its parent, or whoever watches it by a descriptor.
A runner whose disk is full can't answer; it marks what it heard instead, and is left alone.

And against one that does not keep its deadline: it publishes by when it should have ended, and takes that back while it
waits for somebody, or stores its result. One that is still there some seconds later can't keep time itself.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import age_s
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import is_heard, stops_of

UNHEARD_S = 3.0
STUCK_S = 30.0  # for one that still writes its status: it should have heard long ago
LOOK_S = 0.25
OVERDUE_S = 10.0  # a runner ends its work at the deadline, and itself by force three seconds later
_MISSED_S = 1.0
_ENDED_NS = 1
_NO_MOMENT_NS = 10**18  # later than any uptime: a file as it was made, to whose time nothing was set


class _Unheard(NamedTuple):
    asked: float
    sign: float  # the last sign of life
    status_at: str


class KillEscalation:
    """Remembers since when stops of whole runs have gone unheard, and the last sign of life.

    A stop counts from when it was asked for, at most from the look before. `since` stands for a look of a watcher that
    begins to look some time after its runner was started, so that nobody waits for that time once more.
    """

    def __init__(self, *, since: float | None = None) -> None:
        self._unheard: dict[str, _Unheard] = {}
        self._looked = time.monotonic() if since is None else since

    def due(self, runs: dict[str, RunPaths]) -> list[str]:
        """Return the ids of those runs that are to be ended now. Looks four times a second at most."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return []
        last_look, self._looked = self._looked, now
        before, self._unheard = self._unheard, {}
        unheard = set()
        for run_id, paths in runs.items():
            if (found := _unheard_stop(paths)) is None:
                continue
            status_at, age = found
            if (seen := before.get(run_id)) is None:  # not due yet: the machine may have stood still until a moment ago
                asked = max(last_look, now - max(0.0, age))
                self._unheard[run_id] = _Unheard(asked, asked, status_at)
                continue
            seen = seen if seen.status_at == status_at else _Unheard(seen.asked, now, status_at)
            self._unheard[run_id] = seen
            if now - seen.sign >= UNHEARD_S or now - seen.asked >= STUCK_S:
                unheard.add(run_id)
        overdue = {run_id for run_id, paths in runs.items() if _is_overdue(paths, now)}
        for run_id in overdue:
            _note(runs[run_id])
        return sorted(overdue | unheard)


def _is_overdue(paths: RunPaths, now: float) -> bool:
    try:
        due = os.lstat(paths.due).st_mtime_ns
    except OSError:
        return False
    return due == _ENDED_NS or (0 < due < _NO_MOMENT_NS and now - due / 1e9 > OVERDUE_S)


def should_have_ended(paths: RunPaths) -> bool:
    """Say whether a run should have been ended a moment ago: whoever watched it is gone, or stands still as well."""
    if _is_overdue(paths, time.monotonic() - _MISSED_S):
        return True
    return any(age_s(stop.asked_at) > UNHEARD_S + _MISSED_S and not is_heard(paths, stop) for stop in stops_of(paths))


def was_overdue(paths: RunPaths) -> bool:
    """Say whether a run was ended from outside for its deadline, whoever judges it now."""
    try:
        return os.lstat(paths.due).st_mtime_ns == _ENDED_NS
    except OSError:
        return False


def _note(paths: RunPaths) -> None:
    """Note it where the runner published its deadline: to set a time takes no room on a full disk."""
    with contextlib.suppress(OSError):
        os.utime(paths.due, ns=(0, _ENDED_NS), follow_symlinks=False)


def _unheard_stop(paths: RunPaths) -> tuple[str, float] | None:
    """Return the moment of a run's last status, and how many seconds a stop of the whole run has gone unheard since.

    None if no stop is unheard.
    """
    unheard = [age_s(request.asked_at) for request in stops_of(paths) if not is_heard(paths, request)]
    if not unheard:
        return None
    try:
        status = read_document(paths.status, RunStatus, paths.root.name)
    except Unreadable:
        return "", max(unheard)
    return None if status.stopping else (status.updated_at, min(max(unheard), age_s(status.updated_at)))
