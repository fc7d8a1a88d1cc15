"""What an ended run comes to: its output, or the exception that says why there is none."""

from __future__ import annotations

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RunFailed, RunLost, RunStopped, RunTimedOut


def failure(snapshot: Snapshot) -> RunFailed:
    """Return the exception that an ended run without a result comes to."""
    state = str(snapshot.state or "unreadable")
    message = (snapshot.error or _unread(snapshot) or "no reason was recorded").rstrip()
    text = f"Run {snapshot.name} ({snapshot.run_id}) {_verb(snapshot.state)}: {message}"
    kind: type[RunFailed] = RunFailed
    if snapshot.reason == "timeout":
        kind = RunTimedOut
    elif snapshot.state is RunState.STOPPED:
        kind = RunStopped
    elif snapshot.state is RunState.LOST:
        kind = RunLost
    return kind(text, run_id=snapshot.run_id, state=state, reason=snapshot.reason)


def _unread(snapshot: Snapshot) -> str:
    """Say why a run that ended well has no result to give."""
    if snapshot.state not in (RunState.COMPLETE, RunState.PARTIAL) or snapshot.result is not None:
        return ""
    why = next((d.message for d in snapshot.damage if d.document == "result.json"), "it is not there any more")
    return f"it ended as {snapshot.state}, but its result.json can't be read: {why}"


def _verb(state: RunState | None) -> str:
    match state:
        case RunState.STOPPED:
            return "was stopped"
        case RunState.LOST:
            return "was lost"
        case RunState.REJECTED:
            return "was rejected"
        case RunState.PAUSED:
            return "is paused"
        case None:
            return "can't be read"
        case _:
            return "failed"
