"""Records that the disk, or a lack of descriptors, refused are tried again: soon, then every five seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from subagents_nb.errors import Unreadable

_FIRST_S, _LAST_S = 0.1, 5.0


class Backoff:
    """When to try again, and when there is nothing to try for any more."""

    def __init__(self) -> None:
        self._wait_s = 0.0
        self._next = 0.0
        self._told = ""

    @property
    def due(self) -> bool:
        """Whether the time to try has come."""
        return time.monotonic() >= self._next

    @property
    def left_s(self) -> float:
        """How long that will be."""
        return max(0.0, self._next - time.monotonic())

    def tried(self, attempt: Callable[[], object]) -> str | None:
        """Try; return what went wrong if it shall be told, and an empty text if it was told. None: it is done.

        A directory that is gone takes no record, now or later: that is done, too.
        """
        try:
            attempt()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:  # noqa: BLE001 - one run's broken directory must not end the watcher of others
            self._wait_s = min(self._wait_s * 2, _LAST_S) or _FIRST_S
            self._next = time.monotonic() + self._wait_s
            message = f"{type(error).__name__}: {error}" if not isinstance(error, (OSError, Unreadable)) else str(error)
            news, self._told = (message if message != self._told else ""), message
            return news
        return None
