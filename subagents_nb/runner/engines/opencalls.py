"""The tool calls that are open now: each keeps a limit of its own and can be ended by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from subagents_nb.runner.engines.engine import CancelTool

CANCELLED = "The person cancelled this call."


class CallCancelled(Exception):
    """The person ended this call; the run goes on."""


class CallTimedOut(Exception):
    """The call passed its limit, which ends the run."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class OpenCall:
    """One call, from its announcement to its end. Calls of one turn may wait for one another before they begin."""

    def __init__(self) -> None:
        self.cancelled = False
        self.timer: asyncio.Timeout | None = None

    def cancel(self) -> None:
        """End the call, or keep it from beginning; after its end, do nothing."""
        self.cancelled = True
        if self.timer is not None and not self.timer.expired():
            self.timer.reschedule(asyncio.get_running_loop().time())


class OpenCalls:
    """The open calls of one step. The step's context has the way to end each."""

    def __init__(self, register: dict[str, CancelTool]) -> None:
        self._register = register
        self._calls: dict[str, OpenCall] = {}

    def announce(self, call_id: str) -> OpenCall:
        """Enter a call; one that is entered already stays as it is."""
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = OpenCall()
            self._register[call_id] = call.cancel
        return call

    def forget(self, call_id: str) -> None:
        """Strike a call out that has ended."""
        call = self._calls.pop(call_id, None)
        if call is not None and self._register.get(call_id) == call.cancel:
            del self._register[call_id]

    @asynccontextmanager
    async def at_work(self, call_id: str, seconds: float | None) -> AsyncIterator[None]:
        """Keep the call's limit while its work goes on within; what the work started is ended by its cancellation.

        Raises:
            CallCancelled: the person ended the call.
            CallTimedOut: it passed its limit.
        """
        call = self.announce(call_id)
        timer = asyncio.timeout(seconds)
        try:
            if call.cancelled:
                raise CallCancelled
            async with timer:
                call.timer = timer
                yield
        except TimeoutError as error:
            if not timer.expired():
                raise  # the work's own
            raise CallCancelled if call.cancelled else CallTimedOut(seconds or 0.0) from error
        finally:
            call.timer = None
            self.forget(call_id)
