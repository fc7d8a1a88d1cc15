"""What becomes of the children of a run that has ended: they are stopped, in its name."""

from __future__ import annotations

import contextlib

from subagents_nb.domain.runs.control import PARENT, ControlRequest
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.store.runs.requests import Mailbox
from subagents_nb.store.tree.launches import children_of

WAIT_S = 3.0  # so long the end of a run waits for those of its children


def stop_children(home: StoreHome, run_id: str) -> list[str]:
    """Ask the children of a run that has ended to stop, each once; return those that have not ended."""
    runs = FileRuns(home)
    living = [child for child in children_of(home.run(run_id)) if not runs.has_terminal_record(child)]
    for child in living:
        request = ControlRequest(
            run_id=child,
            request_id=f"parent-{run_id}",
            verb="stop",
            asked_at=utc_now(),
            asked_by=PARENT,
            reason="the run that delegated this has ended",
        )
        with contextlib.suppress(OSError):  # gone, or a disk that takes nothing: whoever looks next asks again
            Mailbox(home.run(child)).request(request)
    return living
