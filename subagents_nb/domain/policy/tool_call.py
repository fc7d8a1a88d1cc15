"""One tool call as it is judged: plain words, made where the workspace and the shell's grammar are known."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from subagents_nb.domain.policy.shell_words import ShellLine


@dataclass(frozen=True, slots=True)
class CallPath:
    """A place that a call touches, where it really is and as it was written."""

    written: str
    relative: str | None  # of the real place, below the workspace; None: it lies elsewhere
    absolute: str  # the real place
    home: str | None = None  # ~/… where it lies below the home folder
    also: tuple[str, ...] = ()  # the way that was written, below the workspace: a link may stand in it
    given: bool = False  # the run's own folder, or its inputs: what the plan itself gave to the step

    @property
    def shown(self) -> str:
        """Return the real place as people read it: below the workspace, below home, or else whole."""
        return self.relative or self.home or self.absolute

    @property
    def is_as_written(self) -> bool:
        """Whether it really lies where it was written, with no link in between."""
        return self.given or posixpath.normpath(self.written) in (self.relative, self.absolute)

    def seen_by(self, pattern: str) -> str | None:
        """Return the form of the real place that a rule speaks of."""
        if pattern.startswith("~/"):
            return self.home
        return self.absolute if pattern.startswith("/") else self.relative


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call. What is None or empty, the tool has none of."""

    tool: str  # as rules call it
    path: CallPath | None = None
    below: bool = False  # it looks at all that lies in the path
    line: ShellLine | None = None
    name: str = ""  # of an agent or a skill
    widened: bool = False  # the path is wider than the call says, since what it says can't be judged
