"""Store the one record that must not be lost: a disk that refuses is asked again, for minutes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

_FIRST_RETRY_S, _LAST_RETRY_S, _GIVE_UP_S = 0.1, 5.0, 600.0


def retry_until_written(write: Callable[[], object], *, give_up_s: float = _GIVE_UP_S) -> str | None:
    """Store the result by `write`; return None once it is stored, or why it could not be.

    Where the directory is gone there is nothing to wait for.
    """
    wait, deadline = _FIRST_RETRY_S, time.monotonic() + give_up_s
    while True:
        try:
            write()
        except OSError as error:
            gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
            if gone or time.monotonic() + wait > deadline:
                why = "the run's directory is gone" if gone else _said(error)
                print(f"result not stored: {why}", file=sys.stderr, flush=True)  # noqa: T201
                return why
            time.sleep(wait)
            wait = min(wait * 2, _LAST_RETRY_S)
        else:
            return None


def _said(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
