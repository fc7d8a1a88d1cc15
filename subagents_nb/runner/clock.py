"""Working time: what counts against a deadline. Waits for the person and for rate limits are not work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkClock:
    """Seconds of work since it was made, by a clock that never jumps. Waits may overlap; they count once."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._guard = threading.Lock()
        self._waits = 0
        self._wait_began = 0.0
        self._waited = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time within as waiting."""
        with self._guard:
            if self._waits == 0:
                self._wait_began = self._now()
            self._waits += 1
        try:
            yield
        finally:
            with self._guard:
                self._waits -= 1
                if self._waits == 0:
                    self._waited += self._now() - self._wait_began

    @property
    def waited_s(self) -> float:
        """Return how long it waited so far."""
        with self._guard:
            return self._waited + (self._now() - self._wait_began if self._waits else 0.0)

    @property
    def worked_s(self) -> float:
        """Return how long it worked so far."""
        return self._now() - self._began - self.waited_s
