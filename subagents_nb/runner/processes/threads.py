"""Run something that blocks beside the event loop, so that stopping and the live view go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns, computed in a thread of its own.

    A cancelled caller leaves at once. The thread is a daemon and its late answer goes nowhere, so a blocked disk or a
    slow walk never holds up the end of the process; asyncio's own pool would: python/cpython#80961.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)  # type: ignore[arg-type]

    def body() -> None:
        value: T | None = None
        failure: BaseException | None = None
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - carried over to the caller, whatever it is
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=body, name="aside", daemon=True).start()
    return await answer


async def to_its_end(work: Callable[[], T]) -> T:
    """Return what `work` returns, as `in_thread`; who is cancelled waits for it, as its lock is held for it."""
    task = asyncio.ensure_future(in_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
