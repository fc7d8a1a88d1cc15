"""Processes, and only processes: starting runners, watching them end, proving who is alive."""

from __future__ import annotations

from subagents_nb.supervisor.liveness import liveness_of
from subagents_nb.supervisor.start import Started, start_runner
from subagents_nb.supervisor.sweeping import sweep

__all__ = ["Started", "liveness_of", "start_runner", "sweep"]
