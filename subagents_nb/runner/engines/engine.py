"""The seam between the runner and the ways to carry out a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from subagents_nb.domain.agents.memory import MemoryPlan
from subagents_nb.domain.agents.skills import SkillRecord
from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.policy.permissions import PermissionAnswer, PermissionRequest
from subagents_nb.domain.runs.events import EngineEvent, Noticed, StepOutcome
from subagents_nb.runner.tracking import ReadRecorder

# Where the path of a call really led when it was judged; what carries the call out goes there or nowhere.
judged_place: ContextVar[str | None] = ContextVar("judged_place", default=None)


class Report(Protocol):
    """Take one event; returns at once and never raises."""

    def __call__(self, event: EngineEvent, /) -> None: ...


class Inbox(Protocol):
    """Messages for the model that came while it worked. To take one is to deliver it: its sender is told so."""

    def steers(self) -> Sequence[str]:
        """Take what is to be said before the model's next request, oldest first."""
        ...

    def follow_ups(self) -> Sequence[str]:
        """Take what is to be said now that the turn is over; a turn that gets some goes on."""
        ...


class Limits(Protocol):
    """The limits in force now: a live run can be retuned, so an engine asks before each request and each tool call."""

    @property
    def max_requests(self) -> int:
        """Return how many requests this step may make in all."""
        ...

    @property
    def tool_timeout_s(self) -> float | None:
        """Return how long one tool call may take; None leaves it to the tool."""
        ...

    def over_budget(self) -> str | None:
        """Return what was used of a budget and how to give more, if that allows no further request; else None."""
        ...


class Ask(Protocol):
    """Put a question to the person."""

    async def __call__(self, text: str, choices: Sequence[str] = (), *, call_id: str = "") -> str:
        """Return the answer, however long it takes. The wait eats no deadline."""
        ...


class NotDelegated(Exception):
    """There is no child, and this says why."""


class ChildFailed(Exception):
    """A child ended without an answer, and this says how."""


class Delegate(Protocol):
    """Have runs of other agents do something, and wait for them."""

    async def __call__(self, agent: str, task: str) -> str:
        """Return the answer of one, or what it asks first.

        Raises:
            NotDelegated: it was not started.
            ChildFailed: it ended without an answer.
        """
        ...

    async def reply(self, child: str, text: str, *, to_person: bool = False) -> str:
        """Answer what a child asks, or have the person answer it; return its answer, or what it asks next.

        Raises:
            NotDelegated: no such child waits for an answer.
            ChildFailed: it ended without an answer.
        """
        ...

    async def close(self) -> None:
        """End the children that nobody will answer any more."""
        ...


class Permit(Protocol):
    """Put a tool call to the person."""

    @property
    def granted(self) -> set[str]:
        """Return what the person allowed for the whole run."""
        ...

    async def __call__(self, asked: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        """Return the answer. The wait eats no deadline."""
        ...


class Sandboxed(Protocol):
    """Starts processes in the sandbox of the step."""

    def argv(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        also: Iterable[tuple[str, str]] = (),
        environ: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return the command line that starts `argv` in it; `also` are folders to write, and their names there.

        What of `environ` a program is loaded by is put in place inside alone.
        """
        ...

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a process in it."""
        ...

    def notices(self) -> Iterable[Noticed]:
        """Return what a person should know when its work is over."""
        ...


class Waiting(Protocol):
    """Mark a wait that is nobody's work, such as for a rate limit: no deadline counts it."""

    def __call__(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The inputs of the run as its tools see them; nobody writes there."""

    root: Path
    folder: str  # what the file tools call it
    records: tuple[InputRecord, ...]


@dataclass(frozen=True, slots=True)
class StepSkills:
    """The skills of a step as its tools see them; nobody writes there."""

    root: Path  # of all skills of the run
    folder: str  # what the file tools call it
    records: tuple[SkillRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonEnd:
    """What came of one cell, as the model reads it; `ok` if it ended by itself and without an exception."""

    text: str
    ok: bool


class Python(Protocol):
    """A kernel of the step's own; it comes with the first cell."""

    async def run(self, code: str, *, seconds: float | None = None) -> PythonEnd:
        """Carry out a cell; interrupt it after so many seconds, 120 if None."""
        ...

    async def close(self) -> None:
        """End the kernel and what it started."""
        ...


class StepMemory(Protocol):
    """The memory of a step: the harness reads and writes its files, and this keeps the account."""

    @property
    def plan(self) -> MemoryPlan: ...
    @property
    def folder(self) -> Path: ...
    def texts(self) -> dict[str, str]:
        """Return what is in it, by the names of its files."""
        ...

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Be the only one that writes into memory."""
        ...

    def close(self) -> None:
        """Note what was read, as the step leaves it."""
        ...


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A tool of an MCP server, as the model is told of it."""

    name: str  # mcp__server__tool
    server: str
    own: str  # what its server calls it
    description: str
    schema: dict[str, Any]
    hints: str = ""  # what its server says of it, for people: nobody checks it


class ToolCallFailed(Exception):
    """A call to a server's tool failed; the text is for the model."""


class Served(Protocol):
    """The MCP servers of a step, at work."""

    @property
    def tools(self) -> tuple[ServedTool, ...]: ...

    async def call(self, name: str, args: dict[str, Any]) -> str:
        """Call a tool; return what the model is told.

        Raises:
            ToolCallFailed: it failed.
        """
        ...

    async def close(self) -> None:
        """End the servers."""
        ...


class EmptyInbox:
    """An inbox that never has anything."""

    def steers(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def follow_ups(self) -> Sequence[str]:
        """Return nothing."""
        return ()


@dataclass(slots=True)
class FixedLimits:
    """Limits as planned."""

    max_requests: int = 50
    tool_timeout_s: float | None = None
    spent: str | None = None

    def over_budget(self) -> str | None:
        """Return what is said to be used of the budget."""
        return self.spent


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """What an engine works with: where, with which variables, whom to tell, and what has come in."""

    report: Report
    cwd: Path  # the workspace; tools are confined to it
    step_dir: Path  # exists, private; session.json (the whole history) goes here
    store_home: Path  # where the shared embedded model server keeps its address
    environ: Mapping[str, str]  # the runner's own variables: provider keys are read from here
    tool_environ: Mapping[str, str] = field(default_factory=dict)  # what tools' processes may see: no keys
    workspace: Path | None = None  # the run's directory or worktree, where `cwd` is a folder in it
    history: Path | None = None  # the session of an earlier run, to go on from; read, never written
    inbox: Inbox = field(default_factory=EmptyInbox)
    limits: Limits = field(default_factory=FixedLimits)
    ask: Ask | None = None  # None: nobody can be asked
    delegate: Delegate | None = None  # None: it may delegate to nobody
    permit: Permit | None = None  # likewise, whether a call may be made
    inputs: InputFiles | None = None
    skills: StepSkills | None = None
    memory: StepMemory | None = None
    mcp: Served | None = None  # its MCP servers
    files: Path | None = None  # the run's own folder: N/… is step N's to write, and the progress file
    python: Python | None = None  # None: the step has no such tool
    sandbox: Sandboxed | None = None  # in which every process of its tools is started; None: there is none
    reads: ReadRecorder = field(default_factory=ReadRecorder)  # told of everything that is read of the workspace
    waiting: Waiting = nullcontext
    # Filled by the engine with a way to end one open tool call: cancel_tool["call-id"]().
    open_tools: dict[str, CancelTool] = field(default_factory=dict)


class CancelTool(Protocol):
    """End one open tool call; the model is told that the person cancelled it. Called on the event loop."""

    def __call__(self) -> None: ...


class Engine(Protocol):
    """One way to carry out a step."""

    async def run(self, step: StepPlan, context: StepContext) -> StepOutcome:
        """Carry the step out and return what it came to.

        Stopping and deadlines arrive as task cancellation: an engine saves its history, ends every process it started
        and lets the cancellation through.

        Raises:
            StepFailed: the step ended without a result.
        """
        ...
