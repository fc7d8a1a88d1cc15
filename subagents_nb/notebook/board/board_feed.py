"""Keep one board up to date: which runs there are, how each stands, how many places are taken, what today has cost.

Runs that live are followed by the watcher; a thread of the board's own looks twice a second whether there are new ones
and sends what changed since, all in one message.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Runs
from subagents_nb.launching.controlling.controls import live_limit
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.notebook.board.board_rows import order, origin_of, row_of
from subagents_nb.notebook.board.spent_today import SpentToday
from subagents_nb.store import FileRuns
from subagents_nb.store.runs.seen import is_seen
from subagents_nb.store.waiting.capacity import slots_taken

EVERY_S = 0.5
_LIST_S, _PLACES_S, _BEAT_S = 1.0, 2.0, 5.0
_log = logging.getLogger(__name__)


class BoardFace(Protocol):
    """What a board needs of a widget."""

    def set_trait(self, name: str, value: Any) -> None: ...
    def hold_sync(self) -> Any: ...


class BoardFeed:
    """Feeds one widget, beginning with `runs`. `relist` lists them anew; it is called whenever there are others."""

    def __init__(self, relist: Callable[[], Runs], runs: Runs, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._relist = relist
        self._clock = clock
        self._guard = threading.RLock()
        self._stop = threading.Event()
        self._snapshots: dict[str, Snapshot] = {}
        self._origins: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._unfollow: dict[str, Callable[[], None]] = {}
        self._fresh: dict[str, dict[str, Any] | None] = {}  # what the page does not know yet; None: it is gone
        self._face: BoardFace | None = None
        self._seq = self._beat = 0
        self._mark: object = None
        self._head: dict[str, Any] = {}
        self._listed = self._placed = self._beaten = float("-inf")
        self.home, self.hidden = runs.home, runs.hidden
        self._today = SpentToday(self.home)
        self._take(runs)
        self._fresh.clear()

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return the runs as they stand, in the order of the board."""
        with self._guard:
            return [self._snapshots[row["id"]] for row in order(list(self._rows.values()))]

    def state(self) -> dict[str, Any]:
        """Return the traits as a whole, for a page that is loaded anew."""
        with self._guard:
            return {"rows": dict(self._rows), "head": self._head or self._about(), "fresh": {"seq": self._seq}}

    @property
    def changes(self) -> int:
        """Return a number that differs when anything has changed."""
        return self._seq

    def knows(self, run_id: str) -> bool:
        """Say whether a run stands on this board."""
        with self._guard:
            return run_id in self._rows

    def begin(self, face: BoardFace) -> None:
        """Follow the runs from now on."""
        self._face = face
        with self._guard:
            self._follow()
        # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
        work = contextvars.Context().run
        threading.Thread(target=work, args=(self._loop,), name="subagents-nb-board", daemon=True).start()

    def drop(self) -> None:
        """Follow them no more."""
        self._stop.set()
        with self._guard:
            for unfollow in self._unfollow.values():
                unfollow()
            self._unfollow.clear()

    def hear(self, snapshot: Snapshot) -> None:
        """Take a new reading of one run; called on the watcher's thread."""
        with self._guard:
            if self._stop.is_set() or snapshot.run_id not in self._rows:
                return
            if snapshot.ended:
                self._unfollow.pop(snapshot.run_id, None)
            self._set(snapshot)

    def look_again(self, run_id: str) -> None:
        """Read one run anew: the person has just done something with it."""
        with self._guard:
            if run_id in self._rows:
                self._set(FileRuns(self.home).snapshot(run_id))

    def tick(self) -> None:
        """Look whether there are other runs, and send what changed."""
        now = self._clock()
        if now - self._listed >= _LIST_S and (mark := self._changed()) != self._mark:
            self._listed, runs = now, self._relist()
            with self._guard:
                self._mark = mark
                self._take(runs)
                self._follow()
        head = self._head
        if now - self._placed >= _PLACES_S:
            self._placed, head = now, self._about()
            self._see_again()
        self._send(head, now)

    def _see_again(self) -> None:
        """Look which failures were seen elsewhere meanwhile."""
        with self._guard:
            for run_id, row in list(self._rows.items()):
                if row["need"] == "failed" and is_seen(self.home.run(run_id)):
                    self._set(self._snapshots[run_id])

    def _loop(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.tick()
            except SubagentsError as error:  # the store can't be read just now
                _log.info("the board could not be brought up to date: %s", error)
            except Exception:  # noqa: BLE001 - one fault must not end the board
                _log.exception("the board stumbled")

    def _changed(self) -> object:
        try:
            return os.stat(self.home.runs).st_mtime_ns
        except OSError:
            return None

    def _take(self, runs: Runs) -> None:
        """Take a new list; what it has no more is gone from the board, unless it still lives."""
        self.hidden = runs.hidden
        for snapshot in runs.snapshots:
            self._set(snapshot)
        listed = set(runs.ids)
        for run_id in [one for one in self._rows if one not in listed and self._snapshots[one].ended]:
            del self._rows[run_id], self._snapshots[run_id], self._origins[run_id]
            self._fresh[run_id] = None

    def _set(self, snapshot: Snapshot) -> None:
        run_id = snapshot.run_id
        if run_id not in self._origins:
            plan = snapshot.plan or FileRuns(self.home).snapshot(run_id, whole=True).plan
            self._origins[run_id] = origin_of(plan, run_id)
        seen = snapshot.ended and is_seen(self.home.run(run_id))
        row = row_of(snapshot, self._origins[run_id], seen=seen)
        self._snapshots[run_id] = snapshot
        if self._rows.get(run_id) != row:
            self._rows[run_id] = self._fresh[run_id] = row

    def _follow(self) -> None:
        for run_id, snapshot in self._snapshots.items():
            if not snapshot.ended and run_id not in self._unfollow:
                self._unfollow[run_id] = WATCHER.follow(self.home, run_id, self.hear)

    def _about(self) -> dict[str, Any]:
        """Return what the head says beside the rows: places, and today's sums."""
        limit = None
        with contextlib.suppress(SubagentsError, OSError):  # the current directory may be gone
            limit = live_limit()
        with self._guard:
            known = dict(self._snapshots)
        return {"taken": slots_taken(self.home), "limit": limit, "hidden": self.hidden, **self._today.sums(known)}

    def _send(self, head: dict[str, Any], now: float) -> None:
        with self._guard:
            fresh, self._fresh = self._fresh, {}
            changed: dict[str, Any] = {}
            if fresh:
                self._seq += 1
                gone = [run_id for run_id, row in fresh.items() if row is None]
                rows = {run_id: row for run_id, row in fresh.items() if row is not None}
                changed["fresh"] = {"seq": self._seq, "rows": rows, "gone": gone}
            if head != self._head:
                self._head = changed["head"] = head
        if changed or now - self._beaten >= _BEAT_S:
            self._beaten, self._beat = now, self._beat + 1
            changed["beat"] = self._beat
        face = self._face
        if face is None or not changed:
            return
        with face.hold_sync():  # all in one message
            for name, value in changed.items():
                face.set_trait(name, value)
