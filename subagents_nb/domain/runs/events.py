"""What an engine can report while it carries out a step, and how a step's status follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from subagents_nb.domain.mcp.offered import McpSeen
from subagents_nb.domain.runs.records import RECENT_TOOLS, TAIL_CHARS, Artifact, EndReason, StepStatus, ToolRow, Usage
from subagents_nb.plain_text import shortened

_ARGS_CHARS = 160
# What a step does, said as its activity.
LOADS_MODEL, ASKS_MODEL = "loading the local model", "waiting for the model"


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """The embedded model is being loaded; no request goes out before it is there."""


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A request went out to the model; `number` counts from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """A piece of the answer, as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtStreamed:
    """A piece of the model's reasoning, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call began. `args` is a preview for people."""

    call_id: str
    name: str
    args: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call ended; `refused` says why it was not allowed, when it was not."""

    call_id: str
    ok: bool
    seconds: float
    preview: str = ""
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """The usage of the step so far, as totals; and how much of the model's context its last request took up."""

    usage: Usage
    context_tokens: int = 0
    context_window: int = 0  # 0: not known


@dataclass(frozen=True, slots=True)
class ModelNamed:
    """The provider said which model answered."""

    model: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something a person may want to know; `code` is stable, for programs."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    """A file of the workspace is known to be written by one of the step's tools; `path` is relative to it."""

    path: str


@dataclass(frozen=True, slots=True)
class ChangedMeanwhile:
    """A file of the workspace changed while a program of the step was at work, by that or by others: nobody knows."""

    path: str


@dataclass(frozen=True, slots=True)
class ArtifactMade:
    """A figure, a table or a file was kept in the run's directory."""

    artifact: Artifact


@dataclass(frozen=True, slots=True)
class ServersSeen:
    """The MCP servers of the step are there, and this is what they offer."""

    servers: tuple[McpSeen, ...]


EngineEvent: TypeAlias = (
    ModelLoading
    | ModelAsked
    | TextStreamed
    | ThoughtStreamed
    | ToolStarted
    | ToolEnded
    | UsageChanged
    | ModelNamed
    | Noticed
    | FileChanged
    | ChangedMeanwhile
    | ArtifactMade
    | ServersSeen
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step that ended well. `value` is the structured output, already validated, when a schema was asked for."""

    text: str
    has_value: bool = False
    value: Any = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class StepFailed(Exception):
    """A step that ended without a result: the reason as a word, the message for a person."""

    def __init__(self, reason: EndReason, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.reason: EndReason = reason
        self.message = message
        self.usage = usage


def fold(step: StepStatus, event: EngineEvent) -> StepStatus:
    """Return the step's status after one event."""
    match event:
        case TextStreamed(text):
            tail = (step.tail + text)[-TAIL_CHARS:]
            return step.model_copy(
                update={"tail": tail, "tail_end": step.tail_end + len(text), "activity": "answering"}
            )
        case ThoughtStreamed():
            return step if step.activity == "thinking" else step.model_copy(update={"activity": "thinking"})
        case ModelLoading():
            return step.model_copy(update={"activity": LOADS_MODEL})
        case ModelAsked():
            return step.model_copy(update={"activity": ASKS_MODEL})
        case ToolStarted(call_id, name, args):
            row = ToolRow(call_id=call_id, name=name, args=shortened(" ".join(args.split()), _ARGS_CHARS))
            return step.model_copy(update={"tools": (*step.tools, row)[-RECENT_TOOLS:], "activity": name})
        case ToolEnded():
            return _tool_ended(step, event)
        case UsageChanged(usage, tokens, window):
            context = {"context_tokens": tokens, "context_window": window} if tokens else {}
            return step.model_copy(update={"usage": usage, **context})
        case ModelNamed(model):
            return step.model_copy(update={"model": model})
        case ServersSeen(servers):
            return step.model_copy(update={"mcp": servers})
        case Noticed() | FileChanged() | ChangedMeanwhile() | ArtifactMade():
            return step


def _tool_ended(step: StepStatus, event: ToolEnded) -> StepStatus:
    state: Literal["refused", "complete", "failed"]
    state = "refused" if event.refused is not None else "complete" if event.ok else "failed"
    rows = tuple(
        row.model_copy(update={"state": state, "seconds": round(event.seconds, 3)})
        if row.call_id == event.call_id and row.state == "running"
        else row
        for row in step.tools
    )
    running = [row.name for row in rows if row.state == "running"]
    return step.model_copy(
        update={
            "tools": rows,
            "refusals": step.refusals + (event.refused is not None),
            "activity": running[-1] if running else "",
        }
    )
