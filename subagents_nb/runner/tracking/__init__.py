"""What a run reads of its workspace: noted by the file tools themselves, watched where other programs read."""

from __future__ import annotations

from subagents_nb.runner.tracking.recorder import ReadRecorder

__all__ = ["ReadRecorder"]
