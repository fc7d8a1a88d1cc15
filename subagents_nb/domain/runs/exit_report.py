"""The end of a runner, as its observer saw it, and of the processes that it started, as it tells of them itself."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.runs.records import Identity
from subagents_nb.domain.values.base import Document, Value


class ChildEnd(Value):
    """A process that a runner started: who it was, how it ended, who saw it."""

    pid: int
    start_ticks: int | None = None
    group: int | None = None
    what: Literal["tool", "notice"] = "tool"  # a notice to the person may outlive the run
    how: Literal["exited", "killed", "unknown"] = "unknown"
    code: int | None = None  # below zero: the signal
    seen_by: Literal["runner", "nobody"] = "nobody"
    group_empty: bool | None = None  # nobody of its process group was left; None where nobody looked


class ExitReport(Document):
    """The runner's own account of the processes it started, created once just before its result; none: it had none."""

    kind: Literal["candidate"] = "candidate"
    token: str
    pid: int
    group: int | None = None
    group_empty: bool | None = None  # the runner was the last of its own process group
    children: tuple[ChildEnd, ...] = ()
    dropped: int = 0  # earlier children that were seen to end and are left out


class ProcessRecord(Document):
    """Process-terminal proof, written by the process that started the runner, or by who takes over from it."""

    kind: Literal["process"] = "process"
    state: Literal["pending", "not-started", "observed", "unknown"]
    spawn: Literal["warm", "cold"]
    token: str
    pid: int | None = None
    start_ticks: int | None = None
    observer_pid: int | None = None
    observer: Identity | None = None  # who watches it; its token is the run's
    observed_at: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    # Processes of the run that were still there when its runner had ended, and were ended with it.
    ended_with_it: tuple[int, ...] = ()
    group_empty: bool | None = None
    reason: str | None = None
    # Whether the runner's own account fits what its observer saw; None: it started nothing and nothing was left.
    candidate: Literal["agrees", "differs", "missing", "malformed"] | None = None
