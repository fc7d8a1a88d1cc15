"""What one step did so far: its status, its tool calls, the files it changed, the text not yet written down."""

from __future__ import annotations

from subagents_nb.domain.events import (
    EngineEvent,
    FileChanged,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    fold,
)
from subagents_nb.domain.records import Refusal, StepResult, StepStatus, ToolRow
from subagents_nb.domain.states import StepState

_KEPT_ROWS = 50
_KEPT_FILES = 500
_EDITS = ("write", "edit")


class StepAccount:
    """The running account of one step. Not safe for threads by itself: the journal guards it."""

    def __init__(self, first: StepStatus) -> None:
        self.status = first
        self.refusals: list[Refusal] = []
        self.changed_files: list[str] = []
        self.failed_edits: list[float] = []
        self.last_event_s = 0.0
        self._open: dict[str, tuple[str, str, float]] = {}
        self._rows: list[ToolRow] = []
        self._streams: dict[str, list[str]] = {"thinking": [], "text": []}

    def take(self, event: EngineEvent, now_s: float) -> bool:
        """Take one event; say whether it is a line of its own, not a piece of a stream."""
        self.status = fold(self.status, event)
        self.last_event_s = now_s
        match event:
            case TextStreamed(text):
                self._streams["text"].append(text)
                return False
            case ThoughtStreamed(text):
                self._streams["thinking"].append(text)
                return False
            case ToolStarted(call_id, name, args):
                self._open[call_id] = (name, args, now_s)
            case ToolEnded():
                self._tool_ended(event, now_s)
            case FileChanged(path):
                if path not in self.changed_files and len(self.changed_files) < _KEPT_FILES:
                    self.changed_files.append(path)
            case _:
                pass
        return True

    def streamed(self) -> list[tuple[str, str]]:
        """Return what streamed since the last call, by kind, and forget it."""
        found = [(kind, "".join(parts)) for kind, parts in self._streams.items() if parts]
        for parts in self._streams.values():
            parts.clear()
        return found

    @property
    def open_tools(self) -> tuple[tuple[str, float], ...]:
        """Return the tools at work with the time they began."""
        return tuple((name, at) for name, _, at in self._open.values())

    def open_rows(self, now_s: float) -> tuple[ToolRow, ...]:
        """Return the tools at work as rows."""
        return tuple(
            ToolRow(call_id=call, name=name, args=args[:160], seconds=round(now_s - at, 3))
            for call, (name, args, at) in self._open.items()
        )

    def draft(self) -> StepResult:
        """Return the step as it stands, to be completed into its result."""
        status = self.status
        return StepResult(
            index=status.index,
            agent=status.agent,
            model=status.model,
            state=StepState.RUNNING,
            usage=status.usage,
            refusals=tuple(self.refusals),
            tools=tuple(self._rows[-_KEPT_ROWS:]),
        )

    def _tool_ended(self, event: ToolEnded, now_s: float) -> None:
        name, args, _ = self._open.pop(event.call_id, ("", "", now_s))
        if event.refused is not None:
            self.refusals.append(Refusal(tool=name, why=event.refused[:300]))
        if name in _EDITS:
            self.failed_edits = [*self.failed_edits, now_s][-10:] if not event.ok else []
        state = "refused" if event.refused is not None else "complete" if event.ok else "failed"
        row = {"call_id": event.call_id, "name": name, "args": args[:160], "state": state}
        self._rows.append(ToolRow.model_validate({**row, "seconds": round(event.seconds, 3)}))
