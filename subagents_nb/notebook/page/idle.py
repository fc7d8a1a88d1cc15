"""Work for a moment in which no cell runs, on the kernel's own thread.

What loads modules has to be done there: a thread that imports beside a cell that imports can meet it crosswise, and
then one of both fails with `_DeadlockError` (python/cpython#83065).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

SOON_S = 0.05


def when_idle(work: Callable[[], object]) -> bool:
    """Have `work` done once the cell at hand has ended; False if this shell has no event loop that could."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    # An empty context: what has that of a cell prints into it for ever, ipython/ipykernel#1491.
    loop.call_later(SOON_S, work, context=contextvars.Context())
    return True
