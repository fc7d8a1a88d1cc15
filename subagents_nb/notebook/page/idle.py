"""Work for a moment in which no cell runs, on the kernel's own thread.

What loads modules has to be done there: a thread that imports beside a cell that imports can meet it crosswise, and
then one of both fails with `_DeadlockError` (python/cpython#83065).
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

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


class AfterFirstCell(abc.ABC):
    """Work for once, behind the first cell that a page has run: the cell that loads the extension takes no longer."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._begun = False
        self._parent: dict[str, Any] = {}  # the request that ran this cell

    def install(self) -> None:
        """Wait for the end of that cell."""
        self._shell.events.register("post_run_cell", self._start)

    def remove(self) -> None:
        """Begin nothing more."""
        with contextlib.suppress(ValueError):
            self._shell.events.unregister("post_run_cell", self._start)

    def _start(self, *_: Any) -> None:
        if self._begun:
            return
        self._begun = True
        parent: Any = self._shell.get_parent() if hasattr(self._shell, "get_parent") else None
        self._parent = parent if isinstance(parent, dict) else {}
        metadata = self._parent.get("metadata")
        if isinstance(metadata, dict) and metadata.get("cellId"):  # who only executes notebooks sends none
            when_idle(self._work)

    @abc.abstractmethod
    def _work(self) -> None:
        """Carry it out, on the kernel's own loop."""
