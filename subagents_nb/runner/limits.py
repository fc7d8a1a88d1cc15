"""The limits in force: as planned, until somebody retunes the live run."""

from __future__ import annotations

import threading

from subagents_nb.domain.control import Retune


class LiveLimits:
    """Limits that may change while the run works; read by the engine and by the control thread."""

    def __init__(self, *, timeout_s: float | None, max_requests: int, tool_timeout_s: float | None) -> None:
        self._guard = threading.Lock()
        self._timeout_s = timeout_s
        self._max_requests = max_requests
        self._tool_timeout_s = tool_timeout_s

    @property
    def timeout_s(self) -> float | None:
        """Return the deadline in seconds of working time."""
        with self._guard:
            return self._timeout_s

    @property
    def max_requests(self) -> int:
        """Return how many requests a step may make."""
        with self._guard:
            return self._max_requests

    @property
    def tool_timeout_s(self) -> float | None:
        """Return how long one tool call may take."""
        with self._guard:
            return self._tool_timeout_s

    def retune(self, change: Retune) -> None:
        """Put new limits into force."""
        with self._guard:
            self._timeout_s = change.timeout_s if change.timeout_s is not None else self._timeout_s
            self._max_requests = change.max_requests if change.max_requests is not None else self._max_requests
            self._tool_timeout_s = change.tool_timeout_s if change.tool_timeout_s is not None else self._tool_timeout_s
