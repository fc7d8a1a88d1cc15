"""What one step did so far: its status, its tool calls, the files it changed, the text not yet written down."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from subagents_nb.domain.agents.attention import Attention, Heartbeat, Thresholds, attention
from subagents_nb.domain.runs.events import (
    ArtifactMade,
    ChangedMeanwhile,
    EngineEvent,
    FileChanged,
    Noticed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    fold,
)
from subagents_nb.domain.runs.records import Artifact, Refusal, StepResult, StepStatus, ToolRow
from subagents_nb.domain.runs.states import RunState, StepEvent, StepState
from subagents_nb.domain.values.characters import sayable
from subagents_nb.domain.values.words import one_line
from subagents_nb.store.files.codec import lenient_json

_CROWD = 8  # beyond so many steps each shows a shorter tail
_SHORT_TAIL = 1000
_BRIEF_TEXT = 16 * 1024
_BRIEF_VALUE = 64 * 1024
_KEPT_ROWS = 50
_KEPT_FILES = 500
_EDITS = ("write", "edit")
_KEPT_FAILURES = 10
_KEPT_PATHS = 50
# What is said of an answer that is not all it seems; the rest stands in the events.
_WORTH_A_NOTE = frozenset((
    "cut", "end-unsaid", "answer-cut", "session-not-saved", "output-not-saved", "no-thinking", "model-named-otherwise",
    "acts-later", "not-all-kept",
))  # fmt: skip


class StepAccount:
    """The running account of one step. Not safe for threads by itself: the journal guards it."""

    def __init__(self, first: StepStatus) -> None:
        self.status = first
        self.refusals: list[Refusal] = []
        self.changed_files: list[str] = []
        self.changed_meanwhile: list[str] = []  # by the step or by others
        self.artifacts: list[Artifact] = []
        self.last_event_s = 0.0
        self.result: StepResult | None = None
        self._open: dict[str, tuple[str, str, float]] = {}
        self._rows: list[ToolRow] = []
        self._failed_edits: list[float] = []  # since the last that went well
        self._failed_paths: dict[str, list[float]] = {}  # of each file, since it was last written
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
                path = sayable(path)
                if path not in self.changed_files and len(self.changed_files) < _KEPT_FILES:
                    self.changed_files.append(path)
            case ChangedMeanwhile(path):
                path = sayable(path)
                if path not in self.changed_meanwhile and len(self.changed_meanwhile) < _KEPT_FILES:
                    self.changed_meanwhile.append(path)
            case ArtifactMade(artifact):
                # A file that is kept again takes the place of what it was.
                same = (artifact.kind, artifact.name)
                self.artifacts = [one for one in self.artifacts if (one.kind, one.name) != same]
                self.artifacts.append(artifact)
            case _:
                pass
        return True

    def remark(self, event: EngineEvent, *, alone: bool) -> str:
        """Return what of an event is worth a note that stays with the run; mostly nothing."""
        if not isinstance(event, Noticed) or event.code not in _WORTH_A_NOTE:
            return ""
        who = self.status.label or self.status.agent
        return event.text if alone else f"steps[{self.status.index}] ({who}): {event.text}"

    def streamed(self) -> list[tuple[str, str]]:
        """Return what streamed since the last call, by kind, and forget it."""
        texts = [(kind, "".join(parts)) for kind, parts in self._streams.items() if parts]
        for parts in self._streams.values():
            parts.clear()
        return texts

    @property
    def open_tools(self) -> tuple[tuple[str, float], ...]:
        """Return the tools at work with the time they began."""
        return tuple((name, at) for name, _, at in self._open.values())

    def heartbeat(self, now_s: float, *, alone: bool) -> Heartbeat:
        """Return what is decided from whether to point at the step; `alone` if the run has no other."""
        return Heartbeat(
            now_s=now_s,
            last_event_s=self.last_event_s,
            who="" if alone else f"steps[{self.status.index}] ({self.status.agent})",
            open_tools=self.open_tools,
            failed_edits=tuple(self._failed_edits),
            failed_paths=tuple((path, tuple(moments)) for path, moments in self._failed_paths.items()),
        )

    def open_rows(self, now_s: float) -> tuple[ToolRow, ...]:
        """Return the tools at work as rows."""
        return tuple(
            ToolRow(call_id=call, name=name, args=args[:160], seconds=round(now_s - at, 3))
            for call, (name, args, at) in self._open.items()
        )

    def draft(self) -> StepResult:
        """Return the step as it stands, to be completed into its result."""
        tools = {"tools": tuple(self._rows[-_KEPT_ROWS:]), "refusals": tuple(self.refusals)}
        return StepResult(**self.status.head() | tools | {"started_s": None})

    def end(self, result: StepResult) -> None:
        """Take in how the step ended; its tail is in its result from here on."""
        self.result = result
        self.status = self.status.ended(result)

    def settle(self, run: RunState, unfinished: Callable[[StepResult], StepResult] | None, now_s: float) -> None:
        """Give the step the result that the end of its run leaves it, if it has none."""
        if self.result is not None:
            return
        draft = self.draft()
        if self.status.state is StepState.RUNNING:
            times = {"started_s": self.status.started_s, "ended_s": now_s}
            ended = draft.to(StepEvent.FAIL) if unfinished is None else unfinished(draft)
            self.end(ended.model_copy(update=times))
        else:
            # A paused run can be resumed, so what did not begin still waits.
            self.end(draft if run is RunState.PAUSED else draft.to(StepEvent.SKIP))

    def shown(self, *, crowd: int) -> StepStatus:
        """Return the step as status shows it: in a crowd with less of what it streams."""
        if crowd <= _CROWD:
            return self.status
        status = self.status
        rows = status.tools[-1:] if status.state is StepState.RUNNING else ()
        tail = status.tail[-_SHORT_TAIL:] if status.state is StepState.RUNNING else ""
        return status.model_copy(update={"tail": tail, "tools": rows})

    def _tool_ended(self, event: ToolEnded, now_s: float) -> None:
        name, args, _ = self._open.pop(event.call_id, ("", "", now_s))
        if event.refused is not None:
            self.refusals.append(Refusal(tool=name, why=event.refused[:300]))
        if name in _EDITS:
            self._edited(one_line(args, 80), now_s, ok=event.ok)
        state = "refused" if event.refused is not None else "complete" if event.ok else "failed"
        row = {"call_id": event.call_id, "name": name, "args": args[:160], "state": state}
        self._rows.append(ToolRow.model_validate({**row, "seconds": round(event.seconds, 3)}))

    def _edited(self, path: str, now_s: float, *, ok: bool) -> None:
        # What is shown of an edit's arguments is its path.
        if ok:
            self._failed_edits.clear()
            self._failed_paths.pop(path, None)
            return
        self._failed_edits = [*self._failed_edits, now_s][-_KEPT_FAILURES:]
        self._failed_paths[path] = [*self._failed_paths.pop(path, ()), now_s][-_KEPT_FAILURES:]
        if len(self._failed_paths) > _KEPT_PATHS:
            del self._failed_paths[next(iter(self._failed_paths))]  # the one that failed longest ago


def concerns(
    accounts: Sequence[StepAccount],
    patience: Callable[[int], Thresholds],
    waiting: Collection[int],
    *,
    now_s: float,
    alone: bool,
) -> list[Attention | None]:
    """Return what each step gives reason to point at; one that is `waiting` is not silent."""
    for account in accounts:
        if account.status.index in waiting:
            account.last_event_s = now_s
    return [attention(one.heartbeat(now_s, alone=alone), patience(one.status.index)) for one in accounts]


def truncated(result: StepResult) -> StepResult:
    """Return a step of a chain as the run's result holds it: whole if it is small; all of it is in its own record."""
    update: dict[str, object] = {"recorded": True}
    if len(result.text) > _BRIEF_TEXT:
        update |= {"text": result.text[:_BRIEF_TEXT], "cut": True}
    if result.has_value and len(lenient_json(result.value)) > _BRIEF_VALUE:
        update |= {"value": None, "cut": True}
    return result.model_copy(update=update)
