"""The process-terminal proof: what an observer saw, beside what the runner said of its own processes.

The observer's eyes decide; the runner's candidate can only take a proof away, never give one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from subagents_nb.domain.runs.exit_report import ExitReport, ProcessRecord
from subagents_nb.errors import Unreadable
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.processes.orphans import Orphans

Agreement = Literal["agrees", "differs", "missing", "malformed"]
FINAL = ("not-started", "observed", "unknown")


class Proof(NamedTuple):
    """What is proved, why not more, and whether the runner's candidate fits."""

    state: Literal["not-started", "observed", "unknown"]
    reason: str | None = None
    candidate: Agreement | None = None


def prove(
    *,
    began: bool,
    ended_itself: bool,
    orphans: Orphans,
    report: ExitReport | Agreement,
    started: ProcessRecord,
    lease_held: bool = False,
) -> Proof:
    """Decide what the end of a runner proves. `said` is its candidate, or `missing` or `malformed`.

    `ended_itself` is whether it left a result: only then it had the time to write a candidate. `lease_held` is whether
    somebody still holds, in its name, the session that it went on from.
    """
    if not began:
        return Proof("not-started")
    if isinstance(report, ExitReport):
        if report.token != started.token or report.pid != started.pid:
            return Proof("unknown", "runner-instance-mismatch", "differs")
        agreement: Agreement | None = "agrees" if _fits(report, orphans) else "differs"
    else:
        # A runner that started nothing writes none: then nothing can have been left either.
        silent = report == "missing" and ended_itself and not orphans.ended
        agreement = None if silent else report
    if agreement == "malformed":
        return Proof("unknown", "runner-candidate-malformed", agreement)
    if agreement == "missing" and not orphans.accounted:
        return Proof("unknown", "runner-candidate-missing", agreement)
    if lease_held:
        return Proof("unknown", "session-lease-active", agreement)
    if orphans.empty:
        return Proof("observed", None, agreement)
    reason = "process-tree-unverified" if orphans.empty is False else "unsupported-platform"
    return Proof("unknown", reason, agreement)


def _fits(report: ExitReport, orphans: Orphans) -> bool:
    """Say whether nobody whom the runner saw end was found alive. What it saw running we ended with it."""
    known_pids = {child.pid for child in report.children if child.seen_by == "runner" and child.what == "tool"}
    return not known_pids.intersection(orphans.ended)


def read_exit_report(paths: RunPaths) -> ExitReport | Agreement:
    """Return the runner's candidate, or that there is none or none that can be read.

    Raises:
        Unreadable: not just now.
    """
    try:
        return read_document(paths.candidate, ExitReport, paths.root.name)
    except Unreadable as error:
        if error.kind == "busy":
            raise
        return "missing" if error.kind == "missing" else "malformed"


def is_proved(paths: RunPaths) -> bool:
    """Say whether a final record is there already: the first proof wins.

    Raises:
        Unreadable: that can't be told just now.
    """
    try:
        return read_document(paths.process, ProcessRecord, paths.root.name).state in FINAL
    except Unreadable as error:
        if error.kind == "busy":
            raise
        return False
