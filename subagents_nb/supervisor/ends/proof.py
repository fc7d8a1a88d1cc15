"""The process-terminal proof: what an observer saw, beside what the runner said of its own processes.

The observer's eyes decide; the runner's candidate can only take a proof away, never give one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from subagents_nb.domain.runs.exit_report import Candidate
from subagents_nb.domain.runs.records import ProcessRecord
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
    left: Orphans,
    said: Candidate | Agreement,
    started: ProcessRecord,
    lease_held: bool = False,
) -> Proof:
    """Decide what the end of a runner proves. `said` is its candidate, or `missing` or `malformed`.

    `ended_itself` is whether it left a result: only then it had the time to write a candidate. `lease_held` is whether
    somebody still holds, in its name, the session that it went on from.
    """
    if not began:
        return Proof("not-started")
    if isinstance(said, Candidate):
        if said.token != started.token or said.pid != started.pid:
            return Proof("unknown", "runner-instance-mismatch", "differs")
        agreement: Agreement | None = "agrees" if _fits(said, left) else "differs"
    else:
        # A runner that started nothing writes none: then nothing can have been left either.
        silent = said == "missing" and ended_itself and not left.ended
        agreement = None if silent else said
    if agreement == "malformed":
        return Proof("unknown", "runner-candidate-malformed", agreement)
    if agreement == "missing" and not left.accounted:
        return Proof("unknown", "runner-candidate-missing", agreement)
    if lease_held:
        return Proof("unknown", "session-lease-active", agreement)
    if left.empty:
        return Proof("observed", None, agreement)
    reason = "process-tree-unverified" if left.empty is False else "unsupported-platform"
    return Proof("unknown", reason, agreement)


def _fits(said: Candidate, left: Orphans) -> bool:
    """Say whether nobody whom the runner saw end was found alive. What it saw running we ended with it."""
    gone = {child.pid for child in said.children if child.seen_by == "runner" and child.what == "tool"}
    return not gone.intersection(left.ended)


def read_candidate(paths: RunPaths) -> Candidate | Agreement:
    """Return the runner's candidate, or that there is none or none that can be read.

    Raises:
        Unreadable: not just now.
    """
    try:
        return read_document(paths.candidate, Candidate, paths.root.name)
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
