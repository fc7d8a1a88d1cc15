"""What a run reads of its workspace: noted by the file tools themselves, watched where other programs read."""

from __future__ import annotations

from subagents_nb.runner.tracking.mentions import mentions_of_code, mentions_of_command
from subagents_nb.runner.tracking.moments import Moment, Since
from subagents_nb.runner.tracking.recorder import KeptReads, ReadRecorder

__all__ = ["KeptReads", "Moment", "ReadRecorder", "Since", "mentions_of_code", "mentions_of_command"]
