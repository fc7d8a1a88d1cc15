"""Wait for runs to end. Waiting is only waiting: to interrupt it ends no run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.following.observers import tell_awaited
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.store import FileRuns, StoreHome

# Short enough that an interrupt is heard at once on every platform.
_SLICE_S = 0.2


class WaitInterrupted(KeyboardInterrupt):
    """A wait was interrupted from outside; the runs go on, and the message says how to get them again."""

    def _render_traceback_(self, *_: Any) -> list[str]:
        return [f"Interrupted: {self}"]


def cancelled(error: asyncio.CancelledError, words: str) -> asyncio.CancelledError:
    """Return the error itself, which a cell shows as these words: an `await` was cancelled, and the run goes on.

    `asyncio.timeout` and `TaskGroup` know no subclass of it before 3.13: python/cpython#113848.
    """
    error._render_traceback_ = lambda *_: [f"Interrupted: {words}"]  # type: ignore[attr-defined]
    return error


def still_running_text(names: Sequence[tuple[str, str]]) -> str:
    """Say that runs go on, given their names and ids, and how to look at them."""
    listed = ", ".join(f"{name} ({run_id})" for name, run_id in names)
    verb = "goes on" if len(names) == 1 else "go on"
    again = names[0][1] if len(names) == 1 else "ID"
    return f"{listed} {verb}; see it again with %subagent_attach {again}"


def wait_all(home: StoreHome, run_ids: Sequence[str], within_s: float | None) -> dict[str, Snapshot]:
    """Block until all runs have ended or the time is over; return the snapshots of those that have ended."""
    ended: dict[str, Snapshot] = {}
    change = threading.Condition()

    def on_snapshot(snapshot: Snapshot) -> None:
        if snapshot.ended:
            with change:
                ended[snapshot.run_id] = snapshot
                change.notify_all()

    stops = [WATCHER.follow(home, run_id, on_snapshot) for run_id in run_ids]
    deadline = None if within_s is None else time.monotonic() + within_s
    try:
        with change:
            while len(ended) < len(set(run_ids)):
                left = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
                if left <= 0:
                    break
                change.wait(left)
    finally:
        for stop in stops:
            stop()
    for run_id in set(run_ids) - ended.keys():  # the time may have been too short to be told
        snapshot = FileRuns(home).snapshot(run_id)
        if snapshot.ended:
            ended[run_id] = snapshot
    tell_awaited(ended)
    return ended


async def until_ended(home: StoreHome, run_id: str) -> Snapshot:
    """Wait for one run without blocking the event loop."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Snapshot] = loop.create_future()

    def settle(snapshot: Snapshot) -> None:
        if not over.done():
            over.set_result(snapshot)

    def on_snapshot(snapshot: Snapshot) -> None:
        if snapshot.ended:
            loop.call_soon_threadsafe(settle, snapshot)

    stop = WATCHER.follow(home, run_id, on_snapshot)
    try:
        while not over.done():
            # A kernel whose loop sleeps hears an interrupt only when something wakes it: ipython/ipykernel#881.
            await asyncio.wait((over,), timeout=_SLICE_S)
        tell_awaited([run_id])
        return over.result()
    finally:
        stop()
