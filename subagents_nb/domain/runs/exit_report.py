"""The processes that a runner started, as it tells of them itself."""

from __future__ import annotations

from typing import Literal

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
