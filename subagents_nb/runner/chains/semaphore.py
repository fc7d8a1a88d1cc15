"""Let only so many in at a time, first come first served, under a limit that may change meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class AdjustableSemaphore:
    """An asynchronous context manager. The limit is asked for anew whenever somebody comes or leaves."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if not self._waiting and self._inside < self._limit():
            self._inside += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._inside -= 1
            else:
                self._waiting.remove(turn)
            self.look()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._inside -= 1
        self.look()

    def look(self) -> None:
        """Let in who may come in now; to be called when the limit has grown."""
        while self._waiting and self._inside < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
