"""Write down how a runner ended: the process-terminal proof, and the verdict for a run that left no result."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from dataclasses import replace
from typing import Literal

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import UNSTORED, Ending, Verdict, judge_end
from subagents_nb.domain.runs.records import Identity
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.words import one_line, plain
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import probe
from subagents_nb.store.kept.trash import SESSION_LEASE
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.processes.childlog import read_children
from subagents_nb.store.processes.notice import send_notice
from subagents_nb.store.processes.outliving import outlives
from subagents_nb.store.runs.reader import FileRuns, read_document, read_tail
from subagents_nb.store.runs.requests import stops_of
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.supervisor.ends.children_left import stop_children
from subagents_nb.supervisor.ends.kill_escalation import was_overdue
from subagents_nb.supervisor.ends.proof import is_proved, prove, read_exit_report
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.processes.orphans import Fallen, Orphans, end_run_processes, mark_of

Judge = Literal["supervisor", "shim", "sweep", "launcher"]
_STDERR_CHARS = 4000


def watcher(token: str) -> Identity:
    """Return this process as the one that watches a run."""
    return _itself(os.getpid()).model_copy(update={"token": token})


@functools.cache
def _itself(pid: int) -> Identity:
    return identify(pid, "")


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
        observer=watcher(token),
    )
    writer.process(record)
    return record


def judge_at_once(home: StoreHome, run_id: str, *, exit_code: int | None, signal: int | None, judge: Judge) -> None:
    """Give a run that left no result its verdict before the slower work on its end: a reader would know less of it."""
    with contextlib.suppress(OSError, Unreadable):  # it is tried again with the proof
        if FileRuns(home).has_terminal_record(run_id):
            return
        snapshot = FileRuns(home).snapshot(run_id, whole=True)
        if not snapshot.ended and not snapshot.damage and snapshot.plan is not None:
            ending = Ending(exit_code=exit_code, signal=signal, observed=True)
            judge_run(home, snapshot, ending=ending, judge=judge)


def clear_up(
    home: StoreHome, run_id: str, started: ProcessRecord, *, leader: int | None, fallen: Fallen = tuple
) -> Orphans:
    """End what a run left behind whose runner has ended. `leader` is its pid while that can't be anybody else's.

    Raises:
        OSError: out of descriptors, say; to be tried again.
        Unreadable: likewise.
    """
    rows = read_children(home.run(run_id).children)
    mark = mark_of(run_id, started.token)
    spare = functools.partial(outlives, home, run_id)
    orphans = end_run_processes(
        leader, mark, since=started.start_ticks, recorded=rows or (), fallen=fallen, spare=spare
    )
    if rows is None and _used_tools(FileRuns(home).snapshot(run_id, whole=True)):
        return replace(orphans, accounted=False)
    return orphans


def record_end(
    home: StoreHome,
    run_id: str,
    *,
    started: ProcessRecord,
    exit_code: int | None = None,
    signal: int | None = None,
    orphans: Orphans,
    judge: Judge,
    unseen: Literal["observer-unavailable", "stale-repair"] | None = None,
) -> None:
    """Record the end of a runner: the verdict first if it is needed, then the proof.

    Proof comes last, so that whoever sees it finds the run's last word in place. `unseen` is why nobody saw the end.

    Raises:
        OSError: the disk takes no record now.
        Unreadable: the run can't be read just now, so nothing is decided.
    """
    runs = FileRuns(home)
    snapshot = runs.snapshot(run_id, whole=True)
    if any(damage.kind == "busy" for damage in snapshot.damage):
        raise Unreadable("the run can't be read just now", kind="busy")
    if snapshot.plan is None and snapshot.status is None:
        return  # the launch was rolled back and its directory removed: there is nothing to keep a record of
    stop_children(home, run_id)
    began = _began(snapshot)
    if snapshot.result is None and snapshot.verdict is None:
        ending = Ending(exit_code=exit_code, signal=signal, observed=unseen is None)
        judge_run(home, snapshot, ending=ending, judge=judge)
    paths = home.run(run_id)
    if is_proved(paths):
        return
    itself = snapshot.result is not None
    proof = prove(
        began=began or itself,
        ended_itself=itself,
        orphans=orphans,
        report=read_exit_report(paths),
        started=started,
        lease_held=_holds_session(home, snapshot),
    )
    if unseen is not None and proof.state != "not-started":
        proof = proof._replace(state="unknown", reason=unseen)
    RunWriter(paths).process(
        started.model_copy(
            update={
                **proof._asdict(),
                "observed_at": utc_now(),
                "exit_code": exit_code,
                "signal": signal,
                "ended_with_it": orphans.ended,
                "group_empty": orphans.empty,
            }
        )
    )


def judge_run(home: StoreHome, snapshot: Snapshot, *, ending: Ending, judge: Judge) -> bool:
    """Create the verdict of a run whose runner is proved gone, and tell the person. False: there was one already."""
    paths = home.run(snapshot.run_id)
    stderr = plain(read_tail(paths.err, _STDERR_CHARS))
    last_line = one_line(stderr.splitlines()[-1]) if stderr else ""
    status = snapshot.status
    judgement = judge_end(
        began=_began(snapshot),
        ending=replace(ending, overdue=was_overdue(paths)),
        stop_asked=stop_request_of(paths) is not None,
        last_words=last_line,
        said=status.error if status else None,
        waited_as=snapshot.run_id if _waits(snapshot) else None,
    )
    verdict = Verdict.over(
        RunState.RUNNING if _began(snapshot) else RunState.QUEUED,
        judgement.event,
        run_id=snapshot.run_id,
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
    if not RunWriter(paths).verdict(verdict):
        return False
    if ending.exit_code != UNSTORED:  # such a runner came to its end and told of it itself
        tell(paths, verdict)
    return True


def tell(paths: RunPaths, verdict: Verdict) -> None:
    """Tell the person who is away, by the command of the run's plan, that it ended without a word of its own."""
    text = f"ended without a result: {one_line(verdict.message, 300)}"
    try:
        plan = read_document(paths.plan, LaunchPlan, paths.root.name)
        send_notice(plan.notify_command, run_id=plan.run_id, name=plan.name, text=text)
    except (OSError, Unreadable) as error:
        print(f"run {paths.root.name}: nobody was told of its end: {error}", file=sys.stderr, flush=True)  # noqa: T201


def _began(snapshot: Snapshot) -> bool:
    """Say whether its runner had taken it over; one whose status is cut had, for the first was on the device."""
    if snapshot.status is None:
        return any(damage.document == "status.json" for damage in snapshot.damage)
    return snapshot.status.state is not RunState.QUEUED


def _used_tools(snapshot: Snapshot) -> bool:
    """Say whether a run may have started processes: it called tools, or what it did can't be read."""
    return snapshot.head is None or any(step.tools for step in snapshot.steps)


def _holds_session(home: StoreHome, snapshot: Snapshot) -> bool:
    """Say whether the session that a run went on from is still held in its name, by a process it left behind, say."""
    if snapshot.plan is None or snapshot.plan.resumes is None:
        return False
    lease = home.run(snapshot.plan.resumes.run_id).root / SESSION_LEASE
    return probe(lease) == "held" and read_tail(lease, 100) == snapshot.run_id


def _waits(snapshot: Snapshot) -> bool:
    status = snapshot.status
    return status is not None and status.runner is None and status.queue_keeper is not None


def stop_request_of(paths: RunPaths) -> str | None:
    """Return the reason of a stop of the whole run that was asked for, which may be empty; None if there is none."""
    asked = stops_of(paths)
    return asked[0].reason if asked else None
