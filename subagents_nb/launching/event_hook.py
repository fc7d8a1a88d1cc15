"""A hook for programs: hear of launches, questions, ends and proofs of every run of the store, whoever launched it."""

from __future__ import annotations

import contextvars
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import Unreadable
from subagents_nb.launching.following.observers import observe
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.launching.handle import Run
from subagents_nb.store import FileRuns, StoreHome, open_home
from subagents_nb.store.runs.reader import read_document

Kind = Literal["launched", "asked", "ended", "proved"]
_LOOK_S = 0.5
_PROOF_LOOKS = 240  # a proof that is not there after two minutes is not waited for
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run: it was launched, asked a question, ended, or its process was proved gone.

    `detail` is the id of the question, the state at the end, or what the proof says.
    """

    kind: Kind
    run: Run
    detail: str = ""


@dataclass(slots=True)
class _Known:
    asked: set[str] = field(default_factory=set)
    unfollow: Callable[[], None] | None = None


class Subscription:
    """What `on_event` returns: `stop()` ends it; also at the end of a `with`."""

    def __init__(self, home: StoreHome, callback: Callable[[Event], object]) -> None:
        self._home, self._callback = home, callback
        self._reader = FileRuns(home)
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._events: deque[Event] = deque()
        self._known: dict[str, _Known] = {}
        self._unproved: dict[str, int] = {}
        self._seen_at = -1
        self._newest = ""
        self._unready: list[str] = []
        for run_id in self._new_ids():  # what is at work already is heard of from now on
            if not self._reader.has_terminal_record(run_id):
                self._follow(run_id)
        self._leave = observe(self)
        # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
        threading.Thread(
            target=contextvars.Context().run, args=(self._loop,), name="subagents-nb-events", daemon=True
        ).start()

    def stop(self) -> None:
        """Hear of nothing any more."""
        self._leave()
        self._over.set()
        self._wake.set()
        with self._guard:
            known, self._known = list(self._known.values()), {}
        for one in known:
            if one.unfollow is not None:
                one.unfollow()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launched(self, home: StoreHome, run_id: str) -> None:
        """This process launched a run; told at once, the thread finds it otherwise."""
        if home.root == self._home.root:
            self._on_launch(run_id)

    def awaited(self, run_id: str) -> None:
        """Nothing is told of a wait."""

    def _loop(self) -> None:
        while not self._over.is_set():
            self._unready = [run_id for run_id in (*self._unready, *self._new_ids()) if not self._is_ready(run_id)]
            self._poll_proofs()
            while self._events and not self._over.is_set():
                event = self._events.popleft()
                try:
                    self._callback(event)
                except Exception:  # noqa: BLE001 - a person's own function; the next event is told all the same
                    _log.exception("a callback of on_event failed")
            self._wake.wait(_LOOK_S)
            self._wake.clear()

    def _new_ids(self) -> list[str]:
        """Return the ids that came since the last look, oldest first; where nothing came, nothing is listed."""
        try:
            changed = os.stat(self._home.runs).st_mtime_ns
        except OSError:
            return []
        if changed == self._seen_at:
            return []
        new_ids = list(itertools.takewhile(lambda run_id: run_id > self._newest, self._reader.ids()))
        self._seen_at = changed
        if new_ids:
            self._newest = new_ids[0]
        return new_ids[::-1]

    def _is_ready(self, run_id: str) -> bool:
        """Tell of a new run once its plan is there, by which it has a name; one that went away again is done with."""
        if self._home.run(run_id).plan.exists():
            self._on_launch(run_id)
            return True
        return not self._home.run(run_id).root.exists()

    def _on_launch(self, run_id: str) -> None:
        if self._follow(run_id, ("launched",)):
            self._wake.set()

    def _follow(self, run_id: str, tell: tuple[Kind, ...] = ()) -> bool:
        with self._guard:
            if run_id in self._known or self._over.is_set():
                return False
            known = self._known[run_id] = _Known()
            for kind in tell:
                self._events.append(Event(kind, Run(self._home, run_id)))
        known.unfollow = WATCHER.follow(self._home, run_id, partial(self._on_snapshot, known))
        return True

    def _on_snapshot(self, known: _Known, snapshot: Snapshot) -> None:
        run = Run(self._home, snapshot.run_id)
        for question in snapshot.questions:
            if question.question_id not in known.asked:
                known.asked.add(question.question_id)
                self._events.append(Event("asked", run, question.question_id))
        if snapshot.ended:
            self._events.append(Event("ended", run, snapshot.state.value if snapshot.state is not None else ""))
            self._unproved[run.id] = 0
        self._wake.set()

    def _poll_proofs(self) -> None:
        for run_id, looks in list(self._unproved.items()):
            try:
                record = read_document(self._home.run(run_id).process, ProcessRecord, run_id)
            except Unreadable:
                record = None
            proof_state = record.state if record is not None else "pending"
            if proof_state != "pending":
                self._events.append(Event("proved", Run(self._home, run_id), proof_state))
            if proof_state != "pending" or looks >= _PROOF_LOOKS:
                self._unproved.pop(run_id, None)
            else:
                self._unproved[run_id] = looks + 1


def on_event(callback: Callable[[Event], object]) -> Subscription:
    """Call `callback` with each event of each run of yours from now on, those of other kernels too.

    It is called on a thread of its own, one event after the other; what it raises is logged and ends nothing.
    """
    return Subscription(open_home(), callback)
