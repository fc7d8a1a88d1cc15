"""Find runs whose process is gone and that have no last word, and give them a verdict. Unknown is left alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from subagents_nb.domain.runs.postmortem import Ending, Liveness
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.store.clock import age_s
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.supervisor.ends.kill_escalation import should_have_ended
from subagents_nb.supervisor.ends.termination import judge_run, record_end
from subagents_nb.supervisor.processes.liveness import is_earlier_boot, is_watched, liveness_of
from subagents_nb.supervisor.processes.orphans import end_run_processes, mark_of
from subagents_nb.supervisor.protocol.reaching import ensure_queue_owner
from subagents_nb.supervisor.warm.adoption import left_by
from subagents_nb.supervisor.warm.queue_owner import how_is
from subagents_nb.supervisor.warm.takeover import look_after

# Where the launcher's lock tells nothing: a launch takes milliseconds, and who needs a minute has died in between.
_STARTUP_LIMIT_S = 60.0
# A watcher that lives judges within milliseconds, on a buried machine within seconds; a cold one imports what it needs
# while its runner is at work already, and has no record before that.
_WATCHER_S = 5.0
_noticed: dict[str, float] = {}  # since when runners are gone whose watchers live, or may not have begun
_CUT = ("empty", "torn")  # what a power cut makes of a status that was not on the device yet


def reconcile(home: StoreHome, run_ids: Iterable[str]) -> list[str]:
    """Judge the given runs; return the ids of those that got a verdict now."""
    runs = FileRuns(home)
    return [run_id for run_id in run_ids if _reconcile_one(home, runs, run_id)]


def _reconcile_one(home: StoreHome, runs: FileRuns, run_id: str) -> bool:
    paths = home.run(run_id)
    if probe(paths.lock) == "held":  # alive, and nothing else needs to be read
        if should_have_ended(paths):
            with contextlib.suppress(LaunchError):
                ensure_queue_owner(home)  # it takes over whom nobody watches, and ends it
        return False
    snapshot = runs.snapshot(run_id)
    if snapshot.waits_for_slot and snapshot.status is not None and _is_in_line(home, snapshot.status):
        return False
    if not _is_gone(home, snapshot):
        return False
    # The runner writes its result before it lets the lock go, and its launcher the status: read once more now.
    again = runs.snapshot(run_id, whole=True)
    if not _is_gone(home, again):
        return False
    if any(damage.kind == "busy" for damage in again.damage):
        return False  # what can't be read just now may be its result
    if _is_being_judged(again):
        return False
    try:
        judged = judge_run(home, again, ending=Ending(), judge="sweep")
    except (OSError, Unreadable):
        return False  # the store takes no verdict now; reading goes on without it
    if judged:
        with contextlib.suppress(OSError, Unreadable):  # a supervisor finds what is missing then
            _clear_up(home, again)
    return judged


def _is_being_judged(snapshot: Snapshot) -> bool:
    """Say whether to leave a run to its watcher for a moment: that saw how its runner ended, which we did not."""
    record, status = snapshot.process, snapshot.status
    if record is None:
        begun = status is not None and status.runner is not None
        may_come = begun and age_s(snapshot.started_at) < _STARTUP_LIMIT_S
    else:
        may_come = record.state == "pending" and record.observer is not None and how_is(record.observer) == "up"
    if not may_come:
        return False
    now = time.monotonic()
    return now - _noticed.setdefault(snapshot.run_id, now) < _WATCHER_S


def _is_in_line(home: StoreHome, status: RunStatus) -> bool:
    """See that a run that waits is looked after; False if nobody will ever begin it, so that it can be judged."""
    keeper = status.queue_keeper
    return keeper is not None and not is_earlier_boot(keeper) and look_after(home, status)


def _clear_up(home: StoreHome, snapshot: Snapshot) -> None:
    """Do what whoever watched it can't do any more: end what it left, and say that nobody saw how it ended."""
    record, plan = snapshot.process, snapshot.plan
    if record is not None and plan is not None and record.token == plan.token:
        if record.state != "pending" or is_watched(record):
            return
        orphans = left_by(home, snapshot.run_id, record)
        record_end(home, snapshot.run_id, started=record, orphans=orphans, judge="sweep", unseen="stale-repair")
    elif plan is not None:
        end_run_processes(None, mark_of(snapshot.run_id, plan.token))


def _is_gone(home: StoreHome, snapshot: Snapshot) -> bool:
    """Say whether it is proved that nobody carries out, or will carry out, a run without a last word."""
    paths = home.run(snapshot.run_id)
    if snapshot.state is None:
        # Its status is cut, so nothing names its process: only the lock can tell, and only if it was ever held.
        cut = any(damage.document == "status.json" and damage.kind in _CUT for damage in snapshot.damage)
        return cut and probe(paths.lock) == "free" and probe(paths.launching) != "held"
    if snapshot.state.ended:
        return False
    status = snapshot.status
    # While a run waits for a place, its life is that of the supervisor that keeps its turn.
    identity = (status.runner or status.queue_keeper) if status is not None else None
    liveness = liveness_of(identity, paths, snapshot.plan.token if snapshot.plan is not None else None)
    if liveness is not Liveness.UNKNOWN:
        return liveness is Liveness.DEAD
    launcher = probe(paths.launching)
    unheld = probe(paths.lock) == "free" or not paths.lock.exists()
    if identity is not None or launcher == "held" or not unheld:
        return False
    return launcher == "free" or age_s(snapshot.started_at) > _STARTUP_LIMIT_S
