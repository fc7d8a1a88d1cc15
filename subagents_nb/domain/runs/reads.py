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

    `sha256` is over the sorted names, with the sizes of the files where these were seen too.
    """

    path: str
    pattern: str = "*"
    include: str = ""  # as fnmatch knows it, over the whole path
    sizes: bool = False
    sha256: str


class VariableRead(Value):
    """A variable of the environment that a program asked for; `sha256` is of its value, None where it was not set."""

    name: str
    sha256: str | None = None


class GitRead(Value):
    """What git was asked: how files and index differ from the last commit, and where branches and tags are."""

    sha256: str
    without: tuple[str, ...] = ()  # files that others keep writing: the notebook


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
    variables: tuple[VariableRead, ...] = ()
    git: GitRead | None = None
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

    @property
    def compared(self) -> str:
        """Say what of this is compared before the run stands in for another: `3 files, 1 folder`."""
        counts = {
            "file": len(self.files),
            "folder": len({one.path for one in self.names}),
            "memory": len(self.memory),
            "variable": len(self.variables),
        }
        plurals = {"memory": "memories"}
        words = [
            f"{number} {word if number == 1 else plurals.get(word, word + 's')}"
            for word, number in counts.items()
            if number
        ]
        return ", ".join([*words, *["what git says"] * (self.git is not None)])

    def with_unknown(self, *, steered: bool, appended: bool) -> ReadLog:
        """Return the log; what a person added to the contract meanwhile counts as not known."""
        causes = ["it was steered"] * steered + ["items were appended to it"] * appended
        return self.model_copy(update={"untracked": (*self.untracked, *causes)})


class ReadsSoFar(Document):
    """What a run at work has read up to now: `reads.json`, replaced by its runner; its result holds the whole."""

    kind: Literal["reads"] = "reads"
    reads: ReadLog
