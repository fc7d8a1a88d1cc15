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
from subagents_nb.notebook.board.board_rows import is_news, order, origin_of, row_of
from subagents_nb.notebook.board.carried import Carried
from subagents_nb.notebook.board.old_failures import OldFailures
from subagents_nb.notebook.board.spent_today import SpentToday
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.clock import age_s
from subagents_nb.store.runs.seen import is_seen
from subagents_nb.store.waiting.capacity import slots_taken
from subagents_nb.store.waiting.line import standing

EVERY_S = 0.5
_LIST_S, _PLACES_S, _BEAT_S = 1.0, 2.0, 5.0
_AGAIN_S, _AGAIN_TIMES = 2.0, 50  # how often runs of a state are looked up: of a core that takes 2 % at most
_log = logging.getLogger(__name__)


class BoardFace(Protocol):
    """What a board needs of a widget."""

    def set_trait(self, name: str, value: Any) -> None: ...
    def hold_sync(self) -> Any: ...


class BoardFeed:
    """Feeds one widget, beginning with `runs`. `relist` lists them anew; it is called whenever there are others.

    Runs that are chosen `by_state` come and go as they go on. What `fits` is shown though newer ones have ended since,
    if it went wrong and nobody looked at it. What is sent counts as activity of the kernel, which then is not culled:
    nothing is sent while nothing changes, and a beat only while a cell runs, for a page can't know then who is silent.
    """

    def __init__(
        self,
        relist: Callable[[], Runs],
        runs: Runs,
        *,
        by_state: bool = False,
        fits: Callable[[Snapshot], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._relist, self._by_state = relist, by_state
        self._fits = fits
        self._clock = clock
        self.cell_runs = False
        self._guard = threading.RLock()
        self._stop = threading.Event()
        self._snapshots: dict[str, Snapshot] = {}
        self._shown: dict[str, Snapshot] = {}  # without the questions that another row has
        self._told: dict[str, tuple[float, dict[str, Any]]] = {}  # the rows that the page knows, and since when
        self._carried = Carried()
        self._turns: dict[str, int] = {}
        self._listed_ids: frozenset[str] = frozenset()
        self._again_s = _AGAIN_S
        self._origins: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._unfollow: dict[str, Callable[[], None]] = {}
        self._fresh: dict[str, dict[str, Any] | None] = {}  # what the page does not know yet; None: it is gone
        self._face: BoardFace | None = None
        self._seq = self._beat = 0
        self._mark: object = None
        self._head: dict[str, Any] = {}
        self._listed = self._placed = self._beaten = float("-inf")
        self.home, self._hidden = runs.home, runs.hidden
        self._today = SpentToday(self.home)
        self._old = OldFailures(self.home, fits) if fits is not None else None
        self._turns = turns(self.home)
        self._take(runs)
        self._fresh.clear()

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return the runs as they stand, in the order of the board."""
        with self._guard:
            return [self._shown[row["id"]] for row in order(list(self._rows.values()))]

    def state(self) -> dict[str, Any]:
        """Return the traits as a whole, for a page that is loaded anew."""
        with self._guard:
            rows = {run_id: _of_now(row) for run_id, row in self._rows.items()}
            return {"rows": rows, "head": self._head or self._about(), "fresh": {"seq": self._seq}}

    @property
    def hidden(self) -> int:
        """Return how many runs that have ended are not on the board."""
        with self._guard:
            return max(0, self._hidden - len(self._rows.keys() - self._listed_ids))

    @property
    def changes(self) -> int:
        """Return a number that differs when anything has changed."""
        return self._seq

    def knows(self, run_id: str) -> bool:
        """Say whether a run stands on this board."""
        with self._guard:
            return run_id in self._rows

    def needs(self, run_id: str) -> str:
        """Return what a run on this board needs of the person."""
        with self._guard:
            return str(self._rows[run_id]["need"]) if run_id in self._rows else ""

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
                before = self._rows[run_id]["need"]
                self._set(FileRuns(self.home).snapshot(run_id))
                if before == "failed" != self._rows[run_id]["need"]:
                    self._mark = None  # it may have been kept for that alone

    def tick(self) -> None:
        """Look whether there are other runs, and send what changed."""
        now = self._clock()
        mark = self._changed()
        if (self._by_state and now - self._listed >= self._again_s) or (
            now - self._listed >= _LIST_S and mark != self._mark
        ):
            began, runs = time.perf_counter(), self._relist()
            self._again_s = max(_AGAIN_S, _AGAIN_TIMES * (time.perf_counter() - began))
            with self._guard:
                self._listed, self._mark = now, mark
                self._take(runs)
                self._follow()
        if self._old is not None:
            found = self._old.more(self._rows)
            with self._guard:
                for snapshot in found:
                    self._set(snapshot)
        head = self._head
        if now - self._placed >= _PLACES_S:
            self._placed, head = now, self._about()
            self._see_again()
            self._line_up()
        self._send(head, now)

    def _see_again(self) -> None:
        """Look which failures were seen elsewhere meanwhile."""
        with self._guard:
            for run_id, row in list(self._rows.items()):
                if row["need"] == "failed" and is_seen(self.home.run(run_id)):
                    self._set(self._snapshots[run_id])
                    self._mark = None  # it may have been kept for that alone

    def _line_up(self) -> None:
        """Look which places the waiting runs have in their line."""
        if not any(row["need"] == "waiting" for row in self._rows.values()):
            return
        before, self._turns = self._turns, turns(self.home)
        with self._guard:
            for run_id in self._rows.keys() & {one for one, _ in before.items() ^ self._turns.items()}:
                self._draw(run_id)

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
        """Take a new list; what it has no more is gone from the board, unless it still lives or failed unseen."""
        self._hidden, self._listed_ids = runs.hidden, frozenset(runs.ids)
        for snapshot in runs.snapshots:
            self._set(snapshot)
        for run_id in [one for one in self._rows if one not in self._listed_ids and not self._stays(one)]:
            del self._rows[run_id], self._snapshots[run_id], self._origins[run_id], self._shown[run_id]
            self._told.pop(run_id, None)
            self._carried.drop(run_id)
            if (unfollow := self._unfollow.pop(run_id, None)) is not None:
                unfollow()
            self._fresh[run_id] = None

    def _stays(self, run_id: str) -> bool:
        """Say whether a run stays though it is listed no more."""
        snapshot = self._snapshots[run_id]
        if not snapshot.ended:
            return not self._by_state
        unseen = self._rows[run_id]["need"] == "failed" and self.home.run(run_id).root.is_dir()
        return unseen and (self._fits is None or self._fits(snapshot))

    def _set(self, snapshot: Snapshot) -> None:
        run_id = snapshot.run_id
        if run_id not in self._origins:
            plan = snapshot.plan or FileRuns(self.home).snapshot(run_id, whole=True).plan
            self._origins[run_id] = origin_of(plan, run_id)
        self._snapshots[run_id] = snapshot
        for below in self._carried.take(snapshot) & self._snapshots.keys():
            self._draw(below)
        self._draw(run_id)

    def _draw(self, run_id: str) -> None:
        """Make the row of a run anew; the page is told of it if it says more than that time went by."""
        snapshot, asks_in = self._carried.without(self._snapshots[run_id])
        seen = snapshot.ended and is_seen(self.home.run(run_id))
        turn = self._turns.get(run_id, 0)
        row = row_of(snapshot, self._origins[run_id], seen=seen, asks_in=asks_in, turn=turn)
        now = self._clock()
        self._shown[run_id], self._rows[run_id] = snapshot, row
        if is_news(row, self._told.get(run_id), now, unheard=snapshot.unheard_s > 0):
            self._told[run_id] = now, row
            self._fresh[run_id] = row

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
        if changed or (self.cell_runs and now - self._beaten >= _BEAT_S):
            self._beaten, self._beat = now, self._beat + 1
            changed["beat"] = self._beat
        face = self._face
        if face is None or not changed:
            return
        with face.hold_sync():  # all in one message
            for name, value in changed.items():
                face.set_trait(name, value)


def turns(home: StoreHome) -> dict[str, int]:
    """Return the places of the runs that wait in line, from 1."""
    return {turn.run_id: place for place, turn in enumerate(standing(home), 1)}


def _of_now(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for a page that is told it later than it was made."""
    return row | {"asked_s": age_s(row["asked"])} if "asked" in row else row
