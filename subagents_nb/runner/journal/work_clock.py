"""Working time: what counts against a deadline. Waits for the person and for rate limits are not work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkClock:
    """Seconds of work since it was made, by a clock that never jumps. Waits may overlap; they count once.

    A run's clock has one part for each step at work, and stands still only while all of them wait.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, whole: WorkClock | None = None) -> None:
        self._now = now
        self._began = now()
        self._whole = whole
        self._guard: threading.RLock = threading.RLock() if whole is None else whole._guard
        self._waits = 0
        self._parts = self._waiting_parts = 0
        self._wait_began: float | None = None
        self._waited = 0.0

    @contextmanager
    def part(self) -> Iterator[WorkClock]:
        """Return the clock of one step, for as long as that is at work."""
        clock = WorkClock(self._now, whole=self)
        with self._guard:
            self._parts += 1
            self._settle()
        try:
            yield clock
        finally:
            with self._guard:
                self._parts -= 1
                self._waiting_parts -= clock._wait_began is not None
                clock._whole = None
                self._settle()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time within as waiting."""
        with self._guard:
            self._waits += 1
            self._settle()
        try:
            yield
        finally:
            with self._guard:
                self._waits -= 1
                self._settle()

    @property
    def waited_s(self) -> float:
        """Return how long it waited so far."""
        with self._guard:
            return self._waited + (self._now() - self._wait_began if self._wait_began is not None else 0.0)

    @property
    def is_waiting(self) -> bool:
        """Whether it stands still just now."""
        with self._guard:
            return self._wait_began is not None

    @property
    def worked_s(self) -> float:
        """Return how long it worked so far."""
        return self._now() - self._began - self.waited_s

    def _settle(self) -> None:
        waits = bool(self._waits) or (self._parts > 0 and self._waiting_parts == self._parts)
        if waits == (self._wait_began is not None):
            return
        if waits:
            self._wait_began = self._now()
        elif self._wait_began is not None:
            self._waited += self._now() - self._wait_began
            self._wait_began = None
        if self._whole is not None:
            self._whole._waiting_parts += 1 if waits else -1
            self._whole._settle()
