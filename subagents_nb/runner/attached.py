"""Wait for another run and take over what it came to. That run is somebody's own: it is watched, never ended."""

from __future__ import annotations

import asyncio
import contextlib

from subagents_nb.domain.records import NamedOutput, StepResult
from subagents_nb.domain.states import RunState
from subagents_nb.runner.collecting import given
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.reader import FileRuns

POLL_S = 0.25


class AttachedFailed(Exception):
    """The other run ended without something to go on from."""


async def attached_output(paths: RunPaths, run_id: str, ending: asyncio.Event) -> NamedOutput | None:
    """Return the answer of a run once that has ended; None if `ending` came first.

    Raises:
        AttachedFailed: it ended badly, or is gone.
    """
    reader = FileRuns(StoreHome(paths.root.parents[1]))
    while True:
        snapshot = reader.snapshot(run_id)
        if snapshot.state in (RunState.COMPLETE, RunState.PARTIAL):
            answer = snapshot.answer
            text = given(answer) if isinstance(answer, StepResult) and not answer.has_value else snapshot.text
            return NamedOutput(text=text, has_value=snapshot.has_value, value=snapshot.value, attached_run=run_id)
        if snapshot.ended:
            said = f": {snapshot.error}" if snapshot.error else ""
            raise AttachedFailed(f"The attached run {snapshot.name} ended as {snapshot.state or 'unreadable'}{said}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), POLL_S)
            return None
