"""The documents of a run directory, apart from the plan. One writer each.

Readers believe, in this order: result, verdict, status, plan.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.mcp.offered import McpSeen
from subagents_nb.domain.plans.acceptance import Ledger
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import RunRemarks, StepPlan
from subagents_nb.domain.plans.worktree import WorktreeRecord
from subagents_nb.domain.runs.control import Retuned, SteerReceipt
from subagents_nb.domain.runs.questions import Answered, OpenQuestion
from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RUN, STEP, RunEvent, RunState, StepEvent, StepState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.values.base import Document, Value
from subagents_nb.domain.values.usage import Usage as Usage

TAIL_CHARS = 4000
RECENT_TOOLS = 5

# Why a run or step ended as it did; shown beside the state.
EndReason = Literal[
    "timeout", "stopped", "interrupted", "signal", "provider", "auth", "rate-limit", "connection", "truncated",
    "schema", "context", "budget", "no-answer", "model", "setup", "startup", "vanished", "output-limit", "internal",
    "unknown", "rejected", "fan-out", "placeholder", "child", "attached", "worktree", "fail-fast",
    "drained", "not-stored", "filtered", "other-model",
]  # fmt: skip
# Who ended it.
Actor = Literal["person", "deadline", "budget", "parent", "outside", "provider", "self", "unknown"]


class ToolRow(Value):
    """One tool call as shown: the arguments are a preview of at most 160 characters."""

    call_id: str
    name: str
    args: str = ""
    state: Literal["running", "complete", "failed", "refused"] = "running"
    seconds: float | None = None


class Refusal(Value):
    """A tool call that was not allowed, and why."""

    tool: str
    why: str


class StepHead(Value):
    """What is said of a step while it works and afterwards. Times are seconds since the run began to work."""

    index: int = 0
    agent: str
    model: str  # the one that was chosen, until the provider has named the one that answers
    requested: str = ""  # as it was written; empty: nobody named one
    selected: str = ""  # the one that was chosen
    context_tokens: int = 0  # taken up by the last request and its answer
    context_window: int = 0  # 0: nobody here knows it
    state: StepState = StepState.PENDING
    started_s: float | None = None  # by a monotonic clock, as `ended_s`
    ended_s: float | None = None
    usage: Usage = Usage()
    tools: tuple[ToolRow, ...] = ()
    error: str | None = None
    label: str = ""  # given by a person, or the key of a fan-out's item; nothing of the task
    goal: str = ""
    description: str = ""
    phase: str = ""
    lane: str = ""
    output_name: str | None = None
    skills: tuple[str, ...] = ()  # the names of those that it may load
    mcp: tuple[McpSeen, ...] = ()  # what its MCP servers offered
    carried_from: str | None = None  # the run that did it and paid for it, if this one only takes it over

    def to(self, event: StepEvent, **fields: Any) -> Self:
        """Return the step as it is after an event, with these fields.

        Raises:
            IllegalTransition: the table of the lives of steps lacks the move.
        """
        return self.model_copy(update={**fields, "state": STEP.follow(self.state, event)})

    def head(self) -> dict[str, Any]:
        """Return the fields that a step has while it works and afterwards."""
        return {name: getattr(self, name) for name in StepHead.model_fields}


class StepStatus(StepHead):
    """One step as it stands."""

    _ON_DISK = """
        index agent model state started_s ended_s usage tools refusals tail tail_end activity error label goal
        description phase output_name stopping tool_limit carried_from requested selected context_tokens context_window
        lane skills mcp
    """
    refusals: int = 0
    tail: str = ""
    tail_end: int = 0  # characters streamed in all; the tail covers the last len(tail) of them
    activity: str = ""  # one word of what it does now: thinking, answering, the tool's name
    stopping: bool = False
    tool_limit: int | None = None  # how many tool calls it may make, with a tool budget

    @property
    def refused(self) -> int:
        """How many of its tool calls were refused."""
        return self.refusals

    def ended(self, result: StepResult) -> Self:
        """Return the step as its result leaves it; one that never began may still wait.

        Raises:
            IllegalTransition: no event leads from where it stands to where its result says.
        """
        if result.state is not self.state:
            STEP.check(self.state, result.state)
        taken = {name: getattr(result, name) for name in ("state", "ended_s", "error", "usage")}
        return self.model_copy(update={**taken, "activity": "", "stopping": False})


def first_step(step: StepPlan, *, label: str = "") -> StepStatus:
    """Return the status of a step that has not begun."""
    return StepStatus(
        index=step.index,
        agent=step.agent,
        model=step.model.label,
        requested=step.model.requested if step.model.origin in ("call", "agent", "settings") else "",
        selected=step.model.label,
        label=label or step.title,
        goal=step.goal,
        description=step.description,
        phase=step.phase,
        lane=step.lane,
        output_name=step.output_name,
        skills=tuple(one.name for one in step.skills),
        tool_limit=step.tool_budget.hard if step.tool_budget is not None else None,
    )


class Identity(Value):
    """Which process carries out a run. Start ticks come from the kernel's monotonic figure, never from a wall clock."""

    pid: int
    start_ticks: int | None = None
    boot_id: str | None = None
    pid_namespace: str | None = None
    host: str | None = None
    token: str


class RunHead(RunRemarks, Document):
    """What is said of a run while it lives and when it has ended."""

    state: RunState = RunState.QUEUED
    name: str
    mode: str = "single"
    digest: str = ""
    started_at: str
    elapsed_s: float = 0.0
    timeout_s: float | None = None
    usage: Usage = Usage()
    waited_s: float = 0.0  # waiting for the person or for a rate limit; no deadline counts it
    retunes: tuple[Retuned, ...] = ()
    notes: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()  # of a chain: how its steps follow one another, and how far each stage is
    budget: str | None = None  # how far the usage came: "soft-reached" or "hard-reached", with a usage budget
    usage_budget: UsageBudget | None = None  # the one in force
    reason: EndReason | None = None
    error: str | None = None
    tree: tuple[TreeRow, ...] = ()  # the runs below it, each after its parent

    def to(self, event: RunEvent, **fields: Any) -> Self:
        """Return the run as it is after an event, with these fields.

        Raises:
            IllegalTransition: the table of the lives of runs lacks the move.
        """
        return self.model_copy(update={**fields, "state": RUN.follow(self.state, event)})

    def head(self) -> dict[str, Any]:
        """Return the fields that a run has while it lives and when it has ended."""
        return {name: getattr(self, name) for name in RunHead.model_fields if name != "kind"}


class RunStatus(RunHead):
    """The live record: the launcher writes the first (queued), the runner every later one.

    It has a reason and an error if its run has ended and no disk took the result: no other document can say them.
    """

    _ON_DISK = """
        schema_version kind run_id seq state name mode goal description phase digest runner queue_keeper lacks
        started_at updated_at elapsed_s timeout_s usage steps stopping draining attention questions answers waited_s
        retunes steering notes stages pending_appends fan_out_used budget usage_budget reason error waits tree lane
        workflow workflow_key
    """
    kind: Literal["status"] = "status"
    seq: int = 0
    runner: Identity | None = None
    queue_keeper: Identity | None = None  # the supervisor with which it waits for a place
    lacks: tuple[str, ...] = ()  # variables that it needs and that whoever keeps its turn has not
    updated_at: str
    steps: tuple[StepStatus, ...] = ()
    stopping: bool = False
    draining: bool = False
    attention: Attention | None = None
    questions: tuple[OpenQuestion, ...] = ()
    answers: tuple[Answered, ...] = ()  # what became of the last questions
    steering: tuple[SteerReceipt, ...] = ()
    pending_appends: int = 0
    fan_out_used: int = 0
    waits: bool = False  # its clock stands still: it waits for the person, or for a rate limit

    @property
    def open_tools(self) -> tuple[ToolRow, ...]:
        """The tools that are at work."""
        return tuple(row for step in self.steps for row in step.tools if row.state == "running")

    @property
    def tail(self) -> str:
        """The last lines that were written, of the latest step that wrote any."""
        return next((step.tail for step in reversed(self.steps) if step.tail), "")


class Artifact(Value):
    """A file the run left, by its path inside the run directory."""

    path: str  # empty: it was too large to be kept, and is where `workspace` says
    size: int
    sha256: str
    media_type: str = "application/octet-stream"
    name: str = ""  # fig1, table1; of a file, its path in the workspace
    step: int | None = None
    kind: Literal["figure", "table", "file"] = "file"
    shape: tuple[int, ...] | None = None  # rows and columns; of a figure, height and width in pixels
    workspace: str | None = None  # where in the run's directory a file was made


class SavedOutput(Value):
    """The file in which a step's answer was kept."""

    path: str  # relative to the directory the step works in, or to the run's own in the store
    place: Literal["workspace", "run"] = "workspace"  # `run`: nobody asked for it by name, so it is kept with the run
    bytes: int
    lines: int | None = None  # None: no text, or too much of it to count
    written_by: Literal["step", "runner"]  # the step itself wrote the file, or its answer was put there
    mode: Literal["inline", "file-only"] = "inline"
    error: str | None = None  # why nothing was kept


class StepResult(StepHead):
    """How one step ended; `model` is what answered, as the provider named it.

    `text` is cut at 200 KiB; the whole stands in `text_file` then.
    """

    _ON_DISK = """
        index agent model state text text_file has_value value usage refusals tools reason error label goal description
        phase output_name session saved acceptance worktree started_s ended_s recorded cut carried_from requested
        selected context_tokens context_window lane skills mcp
    """
    state: StepState
    text: str = ""
    text_file: str | None = None
    has_value: bool = False
    value: Any = None
    refusals: tuple[Refusal, ...] = ()
    reason: EndReason | None = None
    session: bool = False  # whether it left a session to go on from
    saved: SavedOutput | None = None
    acceptance: Ledger | None = None
    worktree: WorktreeRecord | None = None
    recorded: bool = False  # the step has a record of its own, `steps/N/result.json`
    cut: bool = False  # text or value stand whole in that record only

    @property
    def refused(self) -> int:
        """How many of its tool calls were refused."""
        return len(self.refusals)


class StepRecord(Document):
    """A step that has ended while its run goes on: `steps/N/result.json`, created once by the runner."""

    kind: Literal["step"] = "step"
    result: StepResult


class NamedOutput(Value):
    """What an item of a chain came to. Where it is one step's, text and value stand with that step."""

    step: int | None = None
    text: str = ""
    has_value: bool = False
    value: Any = None
    attached_run: str | None = None


class RunResult(RunHead):
    """The runner's own last word, created once."""

    _ON_DISK = """
        schema_version kind run_id state name mode goal description phase digest reason actor error started_at ended_at
        elapsed_s timeout_s usage steps waited_s retunes resumed_from changed_files changed_meanwhile open_tools
        artifacts tail notes stages answer outputs budget usage_budget reads tree lane workflow
        workflow_key
    """
    kind: Literal["result"] = "result"
    state: RunState
    actor: Actor = "self"
    ended_at: str
    elapsed_s: float
    steps: tuple[StepResult, ...] = ()
    resumed_from: str | None = None
    changed_files: tuple[str, ...] = ()  # known to be changed by the run, relative to its directory
    changed_meanwhile: tuple[str, ...] = ()  # changed while its programs were at work, by them or by others
    open_tools: tuple[ToolRow, ...] = ()  # at work when the run was ended
    artifacts: tuple[Artifact, ...] = ()
    tail: str = ""
    answer: NamedOutput | None = None  # of a chain: what its last item came to
    outputs: dict[str, NamedOutput] = Field(default_factory=dict)  # by the names the steps gave
    reads: ReadLog | None = None  # None: written by a version that did not look


class RecoveryRecord(Document):
    """What a later resume needs, apart from the plan: which session to continue and under which agent text."""

    kind: Literal["recovery"] = "recovery"
    digest: str
    session_file: str = "steps/0/session.json"
    agent: dict[str, Any] = Field(default_factory=dict)  # of the only step
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict)  # of the steps of a chain, by name
    deadline_at: str | None = None
