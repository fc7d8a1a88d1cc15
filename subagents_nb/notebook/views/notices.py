"""What this kernel has to tell of its runs: which ended, and which ask, without the person having seen it.

A run that is on the page as a live view tells it there. Others are told with the next cell that the person runs, all
together; see `notifications`. What is not told has a reason, kept in `Notices.suppressed`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Run
from subagents_nb.launching.following.watch import WATCHER, Listener
from subagents_nb.store import StoreHome

# Runs that end together are told together, held back for a second at most; a failure is told at once.
SETTLE_S, HOLD_S = 0.15, 1.0

Why = Literal["shown-live", "asked-for", "turned-off", "no-person", "already-told"]
Clock = Callable[[], float]
Follow = Callable[[StoreHome, str, Listener], Callable[[], None]]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Expected:
    """A run of this kernel, from its launch until its end was told or need not be told."""

    run: Run
    unfollow: Callable[[], None] | None = None
    latest: Snapshot | None = None
    ended_at: float | None = None
    asked: set[str] = field(default_factory=set)  # the questions that were told
    called_for: set[str] = field(default_factory=set)  # the questions, and the kind of attention, that a hook was told


@dataclass(frozen=True, slots=True)
class Notifications:
    """What is told at once."""

    ended: tuple[Snapshot, ...] = ()
    asking: tuple[Snapshot, ...] = ()
    fault: str = ""  # of the person's own hook

    def __bool__(self) -> bool:
        return bool(self.ended or self.asking or self.fault)


def is_ripe(ends: Sequence[tuple[float, bool]], now: float) -> bool:
    """Say whether ends, each with its time and whether it went well, are to be told now or may be joined by others."""
    times = [at for at, _ in ends]
    return bool(ends) and (
        not all(well for _, well in ends) or now - max(times) >= SETTLE_S or now - min(times) >= HOLD_S
    )


class Notices:
    """The runs of this kernel.

    `hook` is called with each that ended, `attention_hook` with each that asks or may need a look, once for a question
    or kind of attention: one after the other, on a thread of their own.
    """

    def __init__(self, *, follow: Follow = WATCHER.follow, clock: Clock = time.monotonic) -> None:
        self.enabled = True
        self.hook: Callable[[Run], object] | None = None
        self.attention_hook: Callable[[Run], object] | None = None
        self.suppressed: dict[str, Why] = {}
        self._follow = follow
        self._clock = clock
        self._guard = threading.Lock()
        self._runs: dict[str, _Expected] = {}
        self._fault = ""
        self._to_hook: deque[tuple[str, Callable[[Run], object], Run]] = deque()
        self._hooking = False

    def launched(self, home: StoreHome, run_id: str) -> None:
        """This kernel launched a run, with a magic or from Python."""
        self.expect(Run(home, run_id))

    def awaited(self, run_id: str) -> None:
        """Code of this kernel waited for a run's end and has it."""
        self.known_to_person(run_id)

    def expect(self, run: Run) -> None:
        """Tell of this run when it ends or asks, unless the person sees it otherwise; told again, take this handle."""
        with self._guard:
            known = self._runs.get(run.id)
            if known is not None:
                known.run = run  # a magic knows the type of its output
                return
            if run.id in self.suppressed:
                return
            expected = self._runs[run.id] = _Expected(run)
        expected.unfollow = self._follow(run.home, run.id, self.on_snapshot)

    def shown(self, run_id: str) -> None:
        """A live view of this run stands on the page and tells everything."""
        self._suppress(run_id, "shown-live")

    def known_to_person(self, run_id: str) -> None:
        """Somebody waited for the end of this run, or looked at it, and knows."""
        self._suppress(run_id, "asked-for")

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take a new reading of a run; called on the watcher's thread."""
        with self._guard:
            expected = self._runs.get(snapshot.run_id)
            if expected is None or expected.ended_at is not None:
                return
            expected.latest = snapshot
            if not snapshot.ended:
                if _needs_a_look(expected, snapshot) and self.attention_hook is not None:
                    self._start_hooking("on_attention", self.attention_hook, expected.run)
                return
            expected.ended_at = self._clock()
            if self.hook is not None:
                self._start_hooking("on_end", self.hook, expected.run)

    def take(self, *, person: bool = True) -> Notifications:
        """Take what is to be told now: everything, but for successes that others may still join."""
        with self._guard:
            fault, self._fault = self._fault, ""
            self._let_go(person=person)
            waiting = {run_id: e for run_id, e in self._runs.items() if run_id not in self.suppressed}
            asking = tuple(s for e in waiting.values() if (s := _asks_anew(e)) is not None)
            ended = [(run_id, e.latest, e.ended_at) for run_id, e in waiting.items() if e.latest and e.ended_at]
            if not is_ripe([(at, s.state == "complete") for _, s, at in ended], self._clock()):
                return Notifications(asking=asking, fault=fault)
            for run_id, _, _ in ended:
                self.suppressed[run_id] = "already-told"
                del self._runs[run_id]
            return Notifications(tuple(s for _, s, _ in sorted(ended, key=lambda end: end[2])), asking, fault)

    def fail(self, called: str, error: Exception) -> None:
        """A function of the person's failed: they are told with the next cell, once for all that failed meanwhile."""
        with self._guard:
            self._fault = self._fault or f"Your {called} function failed: {type(error).__name__}: {error}"

    def drain(self, within_s: float) -> list[str]:
        """Wait for the runs of this kernel that are live, at most so long; return the ids of those that go on."""
        deadline = self._clock() + within_s
        with self._guard:
            runs = [e.run for e in self._runs.values() if e.ended_at is None]
        return [run.id for run in runs if not run.wait(max(0.0, deadline - self._clock()))]

    def close(self) -> None:
        """Forget everything; the runs go on."""
        with self._guard:
            expected = list(self._runs.values())
            self._runs.clear()
            self._to_hook.clear()
        for one in expected:
            if one.unfollow is not None:
                one.unfollow()
        self.suppressed.clear()
        self.enabled, self.hook, self.attention_hook, self._fault = True, None, None, ""

    def _suppress(self, run_id: str, why: Why) -> None:
        with self._guard:
            if run_id in self._runs:
                self.suppressed.setdefault(run_id, why)

    def _let_go(self, *, person: bool) -> None:
        """Forget the ended runs of which nothing will be told, and note why."""
        why: Why | None = "no-person" if not person else "turned-off" if not self.enabled else None
        for run_id, expected in list(self._runs.items()):
            if expected.ended_at is None:
                continue
            if why is not None:
                self.suppressed.setdefault(run_id, why)
            if run_id in self.suppressed:
                del self._runs[run_id]

    def _start_hooking(self, called: str, hook: Callable[[Run], object], run: Run) -> None:
        self._to_hook.append((called, hook, run))
        if not self._hooking:
            self._hooking = True
            threading.Thread(target=self._call_hooks, name="subagents-nb-on-end", daemon=True).start()

    def _call_hooks(self) -> None:
        while True:
            with self._guard:
                if not self._to_hook:
                    self._hooking = False
                    return
                called, hook, run = self._to_hook.popleft()
            try:
                hook(run)
            except Exception as error:  # noqa: BLE001 - the person's own function; its fault is told, once
                _log.debug("%s failed", called, exc_info=True)
                self.fail(called, error)


def _needs_a_look(expected: _Expected, snapshot: Snapshot) -> bool:
    """Say whether there is a question or a kind of attention of which no hook was told, and note it."""
    question_ids = {question.question_id for question in snapshot.questions}
    if snapshot.attention is not None and snapshot.attention.kind != "question":
        question_ids.add(snapshot.attention.kind)
    fresh = question_ids - expected.called_for
    expected.called_for = question_ids  # what has passed and comes back is news again
    return bool(fresh)


def _asks_anew(expected: _Expected) -> Snapshot | None:
    """Return the reading of a live run whose questions were not all told yet, and note that they are now."""
    snapshot = expected.latest
    if snapshot is None or expected.ended_at is not None:
        return None
    fresh = {question.question_id for question in snapshot.questions} - expected.asked
    expected.asked |= fresh
    return snapshot if fresh else None


NOTICES = Notices()
