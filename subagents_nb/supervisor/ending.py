"""Write down how a runner ended: the process-terminal proof, and the verdict for a run that left no result."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

from subagents_nb.domain.control import ControlRequest
from subagents_nb.domain.judge import Ending, judge_end
from subagents_nb.domain.records import ProcessRecord, Verdict
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import one_line, plain
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.disk import DISK
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.reader import FileRuns, read_document, read_tail
from subagents_nb.store.writer import RunWriter
from subagents_nb.supervisor.leftovers import Leftovers
from subagents_nb.supervisor.proof import is_proved, prove, read_candidate

Judge = Literal["supervisor", "shim", "sweep", "launcher"]
_STDERR_CHARS = 4000


def record_pending(
    writer: RunWriter, *, spawn: Literal["warm", "cold"], token: str, pid: int, ticks: int | None
) -> ProcessRecord:
    """Say that a runner was started and by whom it is watched; return what was written."""
    record = ProcessRecord(
        run_id=writer.paths.root.name,
        state="pending",
        spawn=spawn,
        token=token,
        pid=pid,
        start_ticks=ticks,
        observer_pid=os.getpid(),
    )
    writer.process(record)
    return record


def record_end(
    home: StoreHome, run_id: str, *, started: ProcessRecord, exit_code: int | None, signal: int | None, left: Leftovers,
    judge: Judge,
) -> None:  # fmt: skip
    """Record the observed end of a runner: the verdict first if it is needed, then the proof.

    Proof comes last, so that whoever sees it finds the run's last word in place.
    """
    runs = FileRuns(home)
    snapshot = runs.snapshot(run_id, whole=True)
    if snapshot.plan is None and snapshot.status is None:
        return  # the launch was rolled back and its directory removed: there is nothing to keep a record of
    began = _began(snapshot)
    if snapshot.result is None:
        ending = Ending(exit_code=exit_code, signal=signal, observed=True)
        judge_run(home, snapshot, ending=ending, judge=judge)
    paths = home.run(run_id)
    if is_proved(paths):
        return
    itself = snapshot.result is not None
    proof = prove(began=began or itself, ended_itself=itself, left=left, said=read_candidate(paths), started=started)
    RunWriter(paths).process(
        started.model_copy(
            update={
                **proof._asdict(),
                "observed_at": utc_now(),
                "exit_code": exit_code,
                "signal": signal,
                "ended_with_it": left.ended,
                "group_empty": left.empty,
            }
        )
    )


def judge_run(home: StoreHome, snapshot: Snapshot, *, ending: Ending, judge: Judge) -> bool:
    """Create the verdict of a run whose runner is proved gone. Return False if there was one already."""
    paths = home.run(snapshot.run_id)
    stderr = plain(read_tail(paths.err, _STDERR_CHARS))
    last_line = one_line(stderr.splitlines()[-1]) if stderr else ""
    status = snapshot.status
    judgement = judge_end(
        began=_began(snapshot),
        ending=ending,
        stop_asked=stop_request_of(paths.control) is not None,
        last_words=last_line,
        waited_as=snapshot.run_id if _waits(snapshot) else None,
    )
    verdict = Verdict(
        run_id=snapshot.run_id,
        state=RunState(judgement.state),
        reason=judgement.reason,
        actor=judgement.actor,
        message=judgement.message,
        tail=snapshot.tail,
        stderr_tail=stderr,
        judged_at=utc_now(),
        judged_by=judge,
        last_sign_of_life=status.updated_at if status else None,
        elapsed_s=status.elapsed_s if status else 0.0,
        evidence={"exit_code": ending.exit_code, "signal": ending.signal, "observed": ending.observed},
    )
    return RunWriter(paths).verdict(verdict)


def _began(snapshot: Snapshot) -> bool:
    """Say whether its runner had taken it over; one whose status is cut had, for the first was on the device."""
    if snapshot.status is None:
        return any(damage.document == "status.json" for damage in snapshot.damage)
    return snapshot.status.state is not RunState.QUEUED


def _waits(snapshot: Snapshot) -> bool:
    status = snapshot.status
    return status is not None and status.runner is None and status.queue_keeper is not None


def stop_request_of(control: Path) -> str | None:
    """Return the reason of a stop that was asked for, which may be empty; None if there is no readable request."""
    try:
        names = sorted(name for name in DISK.names(control) if name.startswith("stop-"))
    except OSError:
        return None
    for name in names:
        with contextlib.suppress(Unreadable):
            return read_document(control / name, ControlRequest, control.parent.name).reason
    return None
