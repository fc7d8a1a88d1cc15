"""Find runs whose process is gone and that have no last word, and give them a verdict. Unknown is left alone."""

from __future__ import annotations

from collections.abc import Iterable

from subagents_nb.domain.judge import Ending, Liveness
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.store.clock import age_s
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.lock import probe
from subagents_nb.store.reader import FileRuns
from subagents_nb.supervisor.ending import judge_run
from subagents_nb.supervisor.leftovers import end_leftovers, mark_of
from subagents_nb.supervisor.liveness import liveness_of

# Where the launcher's lock tells nothing: a launch takes milliseconds, and who needs a minute has died in between.
_STARTUP_LIMIT_S = 60.0
_CUT = ("empty", "torn")  # what a power cut makes of a status that was not on the device yet


def sweep(home: StoreHome, run_ids: Iterable[str]) -> list[str]:
    """Judge the given runs; return the ids of those that got a verdict now."""
    runs = FileRuns(home)
    return [run_id for run_id in run_ids if _sweep_one(home, runs, run_id)]


def _sweep_one(home: StoreHome, runs: FileRuns, run_id: str) -> bool:
    if probe(home.run(run_id).lock) == "held":
        return False  # alive, and nothing else needs to be read
    if not _is_gone(home, runs.snapshot(run_id)):
        return False
    # The runner writes its result before it lets the lock go, and its launcher the status: read once more now.
    again = runs.snapshot(run_id, whole=True)
    if not _is_gone(home, again):
        return False
    try:
        judged = judge_run(home, again, ending=Ending(), judge="sweep")
    except OSError:
        return False  # the store takes no verdict now; reading goes on without it
    if judged and again.plan is not None:
        # Whoever watched it should have done so, but may have died before it. Only what carries its mark is ended.
        end_leftovers(None, mark_of(run_id, again.plan.token))
    return judged


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
    liveness = liveness_of(identity, paths)
    if liveness is not Liveness.UNKNOWN:
        return liveness is Liveness.DEAD
    launcher = probe(paths.launching)
    unheld = probe(paths.lock) == "free" or not paths.lock.exists()
    if identity is not None or launcher == "held" or not unheld:
        return False
    return launcher == "free" or age_s(snapshot.started_at) > _STARTUP_LIMIT_S
