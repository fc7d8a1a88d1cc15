"""The place of a run among the live ones: given back while the run only waits for its children, and taken again."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from subagents_nb.store.layout import StoreHome
from subagents_nb.store.waiting.capacity import coming_back, give_back, take_slot

_LOOK_S = 0.05
_SOON_S = 0.1  # an answer that comes at once costs no place


class RunSlot:
    """The descriptors that hold it, as whoever started the runner handed them over; none where nothing is counted."""

    def __init__(self, home: StoreHome, run_id: str, handles: tuple[int, ...], limit: int | None) -> None:
        self._home = home
        self._run_id = run_id
        self._handles = list(handles)
        self._limit = limit
        self._away = False
        self._taking = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None

    @property
    def is_held(self) -> bool:
        """Whether the run counts as live now."""
        return not self._away

    def leave(self) -> None:
        """Give it back: others may begin. A run that never knew its place keeps it."""
        if self._away or self._limit is None or not self._handles:
            return
        for handle in self._handles:
            give_back(handle)
            with contextlib.suppress(OSError):
                os.close(handle)
        self._handles.clear()
        self._away = True

    async def take(self) -> None:
        """Take one again before the work goes on, ahead of runs that have not begun. May wait for long."""
        async with self._taking:
            if self._is_back():
                return
            with coming_back(self._home, self._run_id):
                while not self._is_back():
                    await asyncio.sleep(_LOOK_S)

    @contextlib.asynccontextmanager
    async def away(self, only_waits: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for somebody who may need a place to answer: it is given back as soon as the run does nothing else.

        It is taken again before the work goes on; who was cancelled does not wait for that.
        """
        loop = asyncio.get_running_loop()

        async def give_back() -> None:
            while True:
                await asyncio.sleep(_SOON_S)
                if only_waits():
                    self.leave()

        giving = loop.create_task(give_back())
        try:
            yield
        except asyncio.CancelledError:
            giving.cancel()
            self._later = loop.create_task(self.take())
            raise
        giving.cancel()
        await self.take()

    def _is_back(self) -> bool:
        """Say whether it is held, after an attempt to take it."""
        with contextlib.suppress(OSError):
            handle = take_slot(self._home, self._limit or 1, back=True) if self._away else None
            if handle is not None:
                self._handles.append(handle)
                self._away = False
        return not self._away
