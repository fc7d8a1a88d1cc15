"""One launcher at a time for each sweep, so that two kernels with the same grid launch each of its runs once."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from subagents_nb.errors import StoreError
from subagents_nb.store.disk import PRIVATE_DIR
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.lock import hold_now

_PAUSE_S = 0.005


@contextlib.contextmanager
def sweep_lock(home: StoreHome, sweep: str, *, patience_s: float = 120.0) -> Iterator[None]:
    """Hold a sweep while one of its runs is looked for and launched. The system frees it when the process ends.

    Raises:
        StoreError: another process holds it for longer than `patience_s`, or it can't be taken.
    """
    if len(sweep) < 16 or not sweep.isalnum():
        raise StoreError(f"{sweep[:40]!r} is no digest of a sweep.")
    deadline = time.monotonic() + patience_s
    path = home.sweeps / f"{sweep[:32]}.lock"
    while True:
        try:
            home.sweeps.mkdir(mode=PRIVATE_DIR, exist_ok=True)
            handle = hold_now(path, owner=str(os.getpid()))
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"Another process launches runs of this sweep for {patience_s:g} s already; wait for it."
                ) from None
            time.sleep(_PAUSE_S)
        except OSError as error:
            raise StoreError(f"The sweep can't be locked: {error.strerror}.") from error
    try:
        yield
    finally:
        os.close(handle)
