"""What a run read of its workspace: enough to tell whether a run of the same contract would see the same."""

from __future__ import annotations

from subagents_nb.domain.base import Value


class FileRead(Value):
    """One file that was read; `sha256` is of its whole content when it was read, None where it was not there."""

    path: str  # relative to the run's directory
    sha256: str | None


class NamesRead(Value):
    """A directory whose names were seen, below a pattern; `sha256` is over the sorted names."""

    path: str
    pattern: str = ""
    sha256: str


class ReadLog(Value):
    """All that was read, or why that is not known."""

    files: tuple[FileRead, ...] = ()
    names: tuple[NamesRead, ...] = ()
    untracked: tuple[str, ...] = ()  # what was done that nobody could watch; empty: everything is known

    @property
    def tracked(self) -> bool:
        """Whether everything that was read is known."""
        return not self.untracked
