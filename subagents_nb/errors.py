"""The error tree.

SubagentsError                something this package reports in plain words
├── RequestError              the caller asked for something that can't be done as asked
│   ├── LaunchRefused         a launch that was refused, with every reason found
│   ├── UnknownRun            no run has this id or name
│   └── AmbiguousRun          several runs fit this name or prefix
├── RunFailed                 the run ended without a result
│   ├── RunStopped            somebody stopped it
│   ├── RunTimedOut           it passed its deadline
│   └── RunLost               its process went away without a word
├── WaitTimedOut              the wait is over, the run goes on
├── StoreError                the run store can't be used safely
│   └── Unreadable            one document can't be read, with the reason
├── ExportError               a run did not arrive where it was to be exported
├── LaunchError               a process could not be started
└── Outdated                  other code is on disk than this process has loaded
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from subagents_nb.plain_text import plain


class SubagentsError(Exception):
    """Something this package reports in plain words; its text is all a person needs."""

    def __str__(self) -> str:
        return plain(super().__str__())  # it may quote a name, a setting or a model

    def _render_traceback_(self, *_: Any) -> list[str]:
        """Let IPython show the message alone: the frames would be ours, never the user's."""
        kind = type(self).__name__
        first, *rest = str(self).splitlines() or [""]
        return [f"{kind}: {first}", *rest]


class RequestError(SubagentsError):
    """The caller asked for something that can't be done as asked."""


class LaunchRefused(RequestError):
    """A launch that was refused before anything started; `reasons` holds all of them."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        if len(self.reasons) == 1:
            text = f"Not launched: {self.reasons[0]}"
        else:
            listed = "\n".join("  - " + reason.replace("\n", "\n    ") for reason in self.reasons)
            text = f"Not launched, for {len(self.reasons)} reasons:\n{listed}"
        super().__init__(text)


class UnknownRun(RequestError):
    """No run has this id or name."""


class AmbiguousRun(RequestError):
    """Several runs fit this name or prefix; the message lists them."""


class RunFailed(SubagentsError):
    """The run ended without a result."""

    def __init__(self, message: str, *, run_id: str, state: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.state = state
        self.reason = reason


class RunStopped(RunFailed):
    """Somebody stopped the run."""


class RunTimedOut(RunFailed):
    """The run passed its deadline."""


class RunLost(RunFailed):
    """The run's process went away without writing a result."""


class WaitTimedOut(SubagentsError):
    """The wait is over; the run goes on."""

    def __init__(self, message: str, *, run_ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.run_ids = tuple(run_ids)


class StoreError(SubagentsError):
    """The run store can't be used safely."""


class Unreadable(StoreError):
    """One document can't be read; `kind` says how: missing, empty, torn, foreign, newer, too-large,
    denied, busy (the system could not look just now)."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ExportError(SubagentsError):
    """A run did not arrive where it was to be exported; the run itself is as it was."""


class LaunchError(SubagentsError):
    """A process could not be started."""


class Outdated(SubagentsError, ImportError):
    """Other code is on disk than this process has loaded: an upgrade took away what it would load now."""


@contextmanager
def unchanged() -> Iterator[None]:
    """Say in plain words what it means that a module of ours, or something in one, is not there.

    Raises:
        Outdated: it is not there.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != __name__.partition(".")[0]:
            raise
        raise Outdated(
            f"subagents_nb was installed anew or removed since this process loaded it ({error}). "
            "Restart the kernel: runs go on, and `attach` finds them."
        ) from error
