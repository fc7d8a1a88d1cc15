"""What a run read of its workspace: enough to tell whether a run of the same contract would see the same."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.agents.memory import MemoryScope
from subagents_nb.domain.values.base import Document, Value


class FileRead(Value):
    """One file that was read; `sha256` is of its whole content when it was read, None where it was not there."""

    path: str  # relative to the run's directory
    sha256: str | None = None


class NamesRead(Value):
    """Names that were seen: those in a directory that match a glob, and `include` if one is given.

    `sha256` is over the sorted names.
    """

    path: str
    pattern: str = "*"
    include: str = ""  # as fnmatch knows it, over the whole path
    sha256: str


class MemoryRead(Value):
    """A memory that was read, as the run left it; `sha256` is over all of it, None where there was nothing."""

    scope: MemoryScope
    path: str
    sha256: str | None = None


class ReadLog(Value):
    """All that was read, or why that is not known; and what the run left in its workspace."""

    files: tuple[FileRead, ...] = ()
    names: tuple[NamesRead, ...] = ()
    memory: tuple[MemoryRead, ...] = ()
    untracked: tuple[str, ...] = ()  # what was done that nobody could watch; empty: everything is known
    own: tuple[str, ...] = ()  # output and progress files: its own, so they count neither as read nor as seen
    left: tuple[FileRead, ...] = ()  # those of them that it was asked for, as it left them
    changed: tuple[str, ...] = ()  # what else it is known to have changed there; nothing of its worktrees
    # What else changed there, by the run or by others, nobody knows: while a program of its was at work, and while one
    # was merely there.
    meanwhile: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def tracked(self) -> bool:
        """Whether everything that was read is known."""
        return not self.untracked

    def with_unknown(self, *, steered: bool, appended: bool) -> ReadLog:
        """Return the log; what a person added to the contract meanwhile counts as not known."""
        causes = ["it was steered"] * steered + ["items were appended to it"] * appended
        return self.model_copy(update={"untracked": (*self.untracked, *causes)})


class ReadsSoFar(Document):
    """What a run at work has read up to now: `reads.json`, replaced by its runner; its result holds the whole."""

    kind: Literal["reads"] = "reads"
    reads: ReadLog
