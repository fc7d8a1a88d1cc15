"""One daemon thread that watches the directories of all followed runs and tells their followers what changed.

Files are the truth and are read at least every two seconds; file events, of which inotify(7) has none where another
machine writes, only make it quick.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.agents.attention import UNHEARD_S
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.warm.reconcile import reconcile

Listener = Callable[[Snapshot], None]
Tick = Callable[[], None]

_log = logging.getLogger(__name__)
_DEBOUNCE_MS, _STEP_MS = 20, 10
_POLL_S = 2.0
# How often it is asked whether the processes still live: each look costs the same, so many runs are asked less often.
_LIVENESS_S, _LIVENESS_EACH_S, _LIVENESS_MOST_S = 0.5, 0.03, 5.0
_TICK_MS = 250
# How often the status of one run is read while it works; its end is read at once. Each reading costs the same, so the
# more runs are watched, the less often: nobody follows a dozen of them by the quarter of a second.
_READ_S, _READ_EACH_S, _READ_MOST_S = 0.25, 0.06, 1.0
_UNREAD_TIMES = 3
_UNHEARD_EVERY_S = 5.0
_LAST_WORDS = ("result.json", "verdict.json")
_DOCUMENTS = ("result.json", "verdict.json", "status.json")


@dataclass(slots=True)
class _Followed:
    home: StoreHome
    run_id: str
    listeners: dict[int, Listener] = field(default_factory=dict)
    ticks: dict[int, Tick] = field(default_factory=dict)
    seen: tuple[object, ...] = ()
    last: Snapshot | None = None
    unread: int = 0  # how often in a row nothing of it could be read
    read: float = 0.0  # when its files were last looked at, by the monotonic clock
    heard: float = 0.0  # when it last said something, by the monotonic clock
    unheard_told: float = 0.0  # when its followers were last told that it says nothing any more


class Watcher:
    """Watches runs until they end. Listeners are called on its thread and must not block."""

    def __init__(self, *, notifier: Callable[[list[str]], Any] | None = None) -> None:
        self._notifier = notifier or file_events
        self._runs: dict[str, _Followed] = {}  # by folder: two stores may hold one run, which came in an archive
        self._guard = threading.RLock()
        self._changed = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._tickets = itertools.count()

    def follow(
        self, home: StoreHome, run_id: str, listener: Listener, *, tick: Tick | None = None
    ) -> Callable[[], None]:
        """Call `listener` with a snapshot now, at every change, and at the end. Return how to stop it.

        `tick` is called about four times a second until then, for views that hold changes back.
        """
        ticket, folder = next(self._tickets), home.run_folder(run_id)
        with self._guard:
            followed = self._runs.setdefault(folder, _Followed(home, run_id))
            followed.listeners[ticket] = listener
            if tick is not None:
                followed.ticks[ticket] = tick
            followed.seen = ()  # the new listener hears the present state too
            self._changed.set()
            self._ensure_thread()

        def unfollow() -> None:
            with self._guard:
                entry = self._runs.get(folder)
                if entry is None:
                    return
                entry.listeners.pop(ticket, None)
                entry.ticks.pop(ticket, None)
                if not entry.listeners:
                    self._runs.pop(folder, None)
                    self._changed.set()

        return unfollow

    def close(self) -> None:
        """Stop watching and end the thread; runs go on."""
        with self._guard:
            self._closing = True
            self._runs.clear()
            self._changed.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2.0)

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._closing = False
            # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
            self._thread = threading.Thread(
                target=contextvars.Context().run, args=(self._loop,), name="subagents-nb-watch", daemon=True
            )
            self._thread.start()

    def _loop(self) -> None:
        while True:
            with self._guard:
                self._changed.clear()
                if self._closing or not self._runs:
                    self._thread = None
                    return
                folders = list(self._runs)
            try:
                self._watch(folders)
            except Exception:  # noqa: BLE001 - a broken watch must not end the view of every run
                _log.exception("the watcher of runs stumbled and goes on by polling")
                time.sleep(_LIVENESS_S)
                self._check_all()

    def _watch(self, folders: list[str]) -> None:
        by_path = {os.path.realpath(folder): folder for folder in folders if os.path.isdir(folder)}
        try:
            notify = self._notifier(list(by_path))
        except (OSError, RuntimeError) as error:
            _log.warning("no file events (%s); runs are looked at four times a second", error)
            notify = _Polling()
        liveness_s = min(max(_LIVENESS_S, _LIVENESS_EACH_S * len(folders)), _LIVENESS_MOST_S)
        with contextlib.closing(notify):
            self._check_all()
            polled = judged = time.monotonic()
            late: set[str] = set()  # runs that said something and were read just before
            while not self._changed.is_set():
                changes = notify.watch(_DEBOUNCE_MS, _STEP_MS, _TICK_MS, self._changed)
                if changes == "poll":
                    self._check_all()
                elif isinstance(changes, set):
                    self._touched(by_path, {path for _, path in changes}, late)
                for folder in [one for one in late if self._is_due(one)]:
                    late.discard(folder)
                    self._check(folder)
                self._tick()
                now = time.monotonic()
                if now - judged >= liveness_s:
                    judged = now
                    self._judge()
                if now - polled >= _POLL_S:
                    polled = now
                    self._check_all()

    def _touched(self, by_path: dict[str, str], paths: set[str], late: set[str]) -> None:
        """Look at the runs that came to an end, and note those that say more: they are looked at when they are due."""
        for path in paths:
            place, name = os.path.split(path)
            if (folder := by_path.get(place)) is None:
                continue
            if name in _LAST_WORDS and folder in self._runs:
                late.discard(folder)
                self._check(folder)
            else:
                late.add(folder)

    def _is_due(self, folder: str) -> bool:
        with self._guard:
            followed, watched = self._runs.get(folder), len(self._runs)
        pause = min(max(_READ_S, _READ_EACH_S * watched), _READ_MOST_S)
        return followed is None or time.monotonic() - followed.read >= pause

    def _check_all(self) -> None:
        for folder in list(self._runs):
            self._check(folder)

    def _tick(self) -> None:
        with self._guard:
            ticks = [tick for followed in self._runs.values() for tick in followed.ticks.values()]
        for tick in ticks:
            self._call(tick)

    def _judge(self) -> None:
        with self._guard:
            entries = [(folder, f.home, f.run_id) for folder, f in self._runs.items()]
        for folder, home, run_id in entries:
            if reconcile(home, [run_id]):
                self._check(folder)

    def _check(self, folder: str) -> None:
        with self._guard:
            followed = self._runs.get(folder)
            if followed is None:
                return
            home, run_id, seen = followed.home, followed.run_id, followed.seen
            followed.read = time.monotonic()
        mark = _signature(folder)
        if mark == seen:
            self._notice_silence(followed)
            return
        snapshot = FileRuns(home).snapshot(run_id)
        followed.unread = followed.unread + 1 if _is_unread(snapshot) else 0
        if 0 < followed.unread < _UNREAD_TIMES:
            return  # what can't be read now is no end: the next poll looks again
        with self._guard:
            followed.seen = mark
            followed.last = snapshot
            followed.heard = time.monotonic() - snapshot.unheard_s
            listeners = list(followed.listeners.values())
            if snapshot.ended:
                self._runs.pop(folder, None)
                self._changed.set()
        for listener in listeners:
            self._call(listener, snapshot)

    def _notice_silence(self, followed: _Followed) -> None:
        """Tell the followers of a run at work whose files have long stood still how long, every few seconds."""
        last, now = followed.last, time.monotonic()
        if last is None or last.state is not RunState.RUNNING:
            return
        unheard_s = now - followed.heard
        if unheard_s < UNHEARD_S or now - followed.unheard_told < _UNHEARD_EVERY_S:
            return
        followed.unheard_told = now
        silent_status = last.model_copy(update={"unheard_s": unheard_s})
        with self._guard:
            listeners = list(followed.listeners.values())
        for listener in listeners:
            self._call(listener, silent_status)

    @staticmethod
    def _call(listener: Callable[..., None], *args: object) -> None:
        try:
            listener(*args)
        except Exception:  # noqa: BLE001 - one view's fault must not blind the others
            _log.exception("a view of a run failed")


def _is_unread(snapshot: Snapshot) -> bool:
    """Whether documents are there and none of them could be read; a run that is gone is another matter."""
    return snapshot.state is None and any(damage.document != "run" for damage in snapshot.damage)


class _Polling:
    """Stands in where file events can't be had: the system's watches are used up, or it has none."""

    def watch(self, _debounce: int, _step: int, timeout_ms: int, stop: threading.Event) -> str:
        """Wait a moment; everything is to be looked at again then."""
        stop.wait(timeout_ms / 1000)
        return "poll"

    def close(self) -> None:
        """Hold nothing."""


def file_events(paths: list[str]) -> Any:
    """Return what reports changes in these directories.

    Raises:
        OSError, RuntimeError: the system gives no more watches, or has none.
    """
    from watchfiles._rust_notify import RustNotify

    return RustNotify(paths, False, False, 0, False, True)


def _signature(folder: str) -> tuple[object, ...]:
    marks: list[object] = []
    for name in _DOCUMENTS:
        try:
            info = os.stat(f"{folder}{os.sep}{name}")
        except OSError as error:
            marks.append(error.errno)
        else:
            marks.append((info.st_ino, info.st_size, info.st_mtime_ns))
    return tuple(marks)


WATCHER = Watcher()
