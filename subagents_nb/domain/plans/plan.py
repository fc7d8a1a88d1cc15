"""A launch: what a person asks for, and the frozen plan that a runner carries out. The runner decides no policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from subagents_nb.domain.agents.agent import PromptCache, Thinking
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.memory import MemoryPlan
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.skills import SkillRecord
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.bounds import OutputBound, OutputPlan
from subagents_nb.domain.plans.budgets import ToolBudget, UsageBudget
from subagents_nb.domain.plans.defaults import LaunchDefaults
from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.flow import OnFailure
from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.domain.plans.request import LaunchRequest as LaunchRequest
from subagents_nb.domain.plans.request import Origin as Origin
from subagents_nb.domain.plans.resumed import Resumes, SessionPlan
from subagents_nb.domain.plans.worktree import WorktreePlan
from subagents_nb.domain.policy.policy import Policy
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.values.base import Document, Ordered, Value, sha256_text, stable_json
from subagents_nb.domain.values.ids import short_id
from subagents_nb.plain_text import shortened

Mode = Literal["single", "parallel", "chain"]

DIGEST_PROJECTION = 1
DEFAULT_CHILDREN = 64  # origin's bound on the runs of one tree
DEFAULT_DEPTH = 2  # levels of runs below the root
DEFAULT_PARALLEL = 20  # origin's bound on what one run does at a time
DEFAULT_PYTHON_MB = 2048
CHILD_TIMEOUT_S = 1800.0  # for a step of a chain, which itself has no deadline
_LABEL_CHARS = 160


# What may differ in a step whose result stands in for another's: words for people, its place, and its limits.
_NOT_BOUND = (
    "index", "agent_source", "agent_where", "agent_digest", "label", "title", "goal", "description", "phase", "lane",
    "schema_name", "timeout_s", "tool_timeout_s", "checkpoint_s", "max_requests", "output_retries", "prompt_cache",
    "fast", "verify_model", "response_aliases", "script",
)  # fmt: skip


class StepPlan(Value):
    """One agent, one task, fully resolved. What its contract does not bind is named above."""

    index: int = 0
    agent: str
    agent_source: str
    agent_where: str = ""
    agent_digest: str
    label: str = ""  # what a list may show of the task
    task: str
    system_prompt: str = ""
    prompt_mode: Literal["replace", "append"] = "replace"
    model: ModelChoice
    thinking: Thinking | None = None
    prompt_cache: PromptCache | None = None
    fast: bool = False
    verify_model: bool = False  # an answer by another model than the one that was asked is none
    response_aliases: tuple[str, ...] = ()  # names by which the model may answer
    temperature: float | None = None
    tools: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    timeout_s: float | None = None
    tool_timeout_s: float | None = None
    checkpoint_s: float | None = None  # None: as for the run
    max_requests: int = 50
    max_output: OutputBound | None = None
    output_retries: int = 2
    title: str = ""  # the label a person gave it; unlike `label` it holds nothing of the task
    # Said beside the task, for people: no model is told, nothing is decided by it.
    goal: str = ""
    description: str = ""
    phase: str = ""
    lane: str = ""
    output_name: str | None = None
    output: OutputPlan | None = None
    reads: tuple[str, ...] = ()
    progress: bool = False
    skills: tuple[SkillRecord, ...] = ()
    mcp: tuple[McpServer, ...] = ()  # started when it begins, and gone with it
    script: dict[str, str] = Field(default_factory=dict)  # that was allowed to be the model, by path: its SHA-256
    memory: MemoryPlan | None = None
    acceptance: Acceptance | None = None
    reviewer: StepPlan | None = None  # who reviews it, resolved
    # Whom it may delegate to, and over how many levels of runs below its own. Each of them is resolved, as a reviewer
    # is; none where the levels end.
    delegates: tuple[str, ...] = ()
    depth: int = 0
    children: tuple[StepPlan, ...] = ()
    asks_parent_s: float | None = None  # so long its questions wait for who delegated it, then for the person
    tool_budget: ToolBudget | None = None
    worktree: WorktreePlan | None = None
    cwd: str | None = None  # relative to the run's directory or its worktree's, never out of it
    session: SessionPlan | None = None
    policy: Policy | None = None  # what it may do; None: nobody limits it
    sandbox: SandboxPlan | None = None  # of its processes; None: they have the person's rights, or there are none

    def as_run(self, task: str) -> Self:
        """Return it as the one step of a run of its own, whose deadline is the run's."""
        return self.model_copy(update={"index": 0, "task": task, "label": label_of(task), "timeout_s": None})

    def at_most_s(self, left_s: float | None) -> float:
        """Return how long a run of it may take where its parent has so long."""
        limits = [seconds for seconds in (self.timeout_s, left_s) if seconds is not None]
        return max(0.1, min(limits)) if limits else CHILD_TIMEOUT_S

    def contract(self) -> dict[str, Any]:
        """Return what the launch contract binds of this step; prompts enter as hashes."""
        model = self.model.model_dump(mode="json", exclude={"origin", "requested", "key_env", "thinking"})
        bound: dict[str, Any] = {
            "agent": self.agent_digest,
            "task": sha256_text(self.task),
            "model": model,
            "thinking": self.thinking,
            "system_prompt": sha256_text(self.system_prompt),
            "prompt_mode": self.prompt_mode,
            "tools": sorted(self.tools),
            "output_schema": self.output_schema,
        }
        # Only what is set, so that a field added later leaves the digests of older launches as they are.
        added: dict[str, Any] = {
            **self.model_dump(mode="json", exclude={*_NOT_BOUND, *bound}),
            "output": self.output.model_dump(mode="json", exclude={"explicit"}) if self.output else None,
            "skills": [one.contract() for one in self.skills],
            "mcp": [one.contract() for one in self.mcp],
            "memory": self.memory.contract() if self.memory else None,
            "reviewer": self.reviewer.contract() if self.reviewer else None,
            "children": [child.contract() for child in self.children],
            "worktree": self.worktree.model_dump(mode="json", include={"base_commit", "subdir", "setup_hook"})
            if self.worktree
            else None,
            "session": self.session.sha256 if self.session else None,
            "fork": self.session.fork if self.session else None,
            "policy": self.policy.contract() if self.policy else None,
        }
        return bound | {key: value for key, value in added.items() if value or (key == "temperature" and value == 0)}


class StepItem(Value):
    """One step, in its turn."""

    kind: Literal["step"] = "step"
    step: int


class ItemOfSeveral(Value):
    """What is planned of several steps together."""

    concurrency: int = Field(ge=1)
    fail_fast: bool = False
    on_failure: OnFailure = "stop"
    output_name: str | None = None
    title: str = ""
    phase: str = ""
    acceptance: Acceptance | None = None  # of all its steps together


class GroupItem(ItemOfSeveral):
    """Steps that are at work at the same time."""

    _ON_DISK = "kind steps concurrency fail_fast on_failure output_name title phase acceptance"
    kind: Literal["parallel"] = "parallel"
    steps: tuple[int, ...] = Field(min_length=1)


class FanOutItem(ItemOfSeveral):
    """One step for each item of an array; they get their numbers when the items are known."""

    _ON_DISK = """
        kind template source path item key max_items on_empty concurrency fail_fast on_failure output_name
        collect_schema title phase acceptance
    """
    kind: Literal["expand"] = "expand"
    template: StepPlan
    source: str  # the name of an earlier structured output
    path: str  # JSON Pointer
    item: str = "item"
    key: str | None = None  # JSON Pointer
    max_items: int = Field(ge=0)
    on_empty: Literal["skip", "fail"] = "skip"
    collect_schema: dict[str, Any] | None = None


class AttachedItem(Value):
    """Another run whose output the next item goes on from."""

    kind: Literal["attached"] = "attached"
    attached_run: str  # its id
    output_name: str | None = None
    title: str = ""
    step: int | None = None  # the one step of it that counts
    outputs: tuple[str, ...] = ()  # its named outputs that this chain refers to


PlanItem: TypeAlias = Annotated[StepItem | GroupItem | FanOutItem | AttachedItem, Field(discriminator="kind")]


class RunRemarks(Ordered):
    """What a person says of a run, to be shown and found by it. Nothing is decided by it."""

    goal: str = ""
    description: str = ""
    phase: str = ""
    lane: str = ""
    workflow: str = ""  # the run of a workflow elsewhere that it is part of
    workflow_key: str = ""


class RunPlan(RunRemarks, Value):
    """What a run is to do and may use: all of a plan but its identity."""

    mode: Mode = "single"
    cwd: str
    steps: tuple[StepPlan, ...]
    # How the steps follow one another; empty: there is one step. A step that a fan-out or an append adds is not here.
    items: tuple[PlanItem, ...] = ()
    task: str = ""  # what `{task}` stands for in a chain
    usage_budget: UsageBudget | None = None
    max_children: int = DEFAULT_CHILDREN  # how many steps the run may ever start
    max_parallel: int = DEFAULT_PARALLEL  # how many of them at a time
    max_live: int | None = None  # how many runs may be live, for those that it delegates to; None: it delegates nothing
    inputs: tuple[InputRecord, ...] = ()
    python_memory_mb: int = DEFAULT_PYTHON_MB  # of the python tool's kernel
    experiment: ExperimentPart = ExperimentPart()
    timeout_s: float | None = None
    # Variables that tools may see although their names look secret.
    tool_env: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()
    resumes: Resumes | None = None
    notify_command: tuple[str, ...] = ()
    checkpoint_s: float | None = None  # so long before the deadline the agent is asked to leave its findings
    patience: AttentionSettings = AttentionSettings()  # when to point at it
    defaults: LaunchDefaults | None = None  # of a chain; None: written by a version that did not keep them

    def left_s(self, worked_s: float) -> float | None:
        """Return what is left of the deadline; None without one."""
        return None if self.timeout_s is None else max(0.1, self.timeout_s - worked_s)

    def body(self) -> dict[str, Any]:
        """Return all of it but identity: what a draft and the plan made of it have in common."""
        return {name: getattr(self, name) for name in RunPlan.model_fields}


class LaunchPlan(RunPlan, Document):
    """The frozen run. Written once by the launcher, read by the runner and by nobody who shows it to a page."""

    _ON_DISK = """
        schema_version kind run_id mode cwd steps items task usage_budget max_children max_parallel max_live inputs
        python_memory_mb experiment timeout_s tool_env notes tags origin resumes notify_command checkpoint_s patience
        goal description phase lane workflow workflow_key defaults name digest created_at token
    """
    kind: Literal["plan"] = "plan"
    name: str
    digest: str
    created_at: str  # UTC, ISO 8601
    token: str  # instance token: says which process is this run's, no secret

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if not self.steps and not self.items:
            raise ValueError("a plan has at least one step")
        return self

    @property
    def is_flow(self) -> bool:
        """Whether its steps follow one another by items."""
        return bool(self.items)


class Draft(RunPlan):
    """A plan before it has an id, a name and a clock: what `preflight` shows and what the digest is over."""

    name: str | None = None
    # Why no run of it could begin here and now: a key, a client or the embedded model is missing. A run that is there
    # already can stand in all the same.
    start_problems: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()  # what of the project would act in it since the person allowed that

    @property
    def digest(self) -> str:
        """Return the launch contract digest: equal contracts have equal digests, whatever their names and deadlines."""
        return digest_of(self.contract())

    def contract(self) -> dict[str, Any]:
        """Return what the launch contract binds."""
        bound: dict[str, Any] = {
            "projection": DIGEST_PROJECTION,
            "mode": self.mode,
            "steps": [step.contract() for step in self.steps],
        }
        if self.items:
            bound["items"] = [_item_contract(item) for item in self.items]
            bound["task"] = sha256_text(self.task)
        if self.inputs:
            bound["inputs"] = [one.contract() for one in self.inputs]
        if self.resumes is not None:
            bound["resumes"] = self.resumes.run_id
            if self.resumes.chain is not None:
                resumed = self.resumes.chain
                bound["goes_on"] = {**resumed.model_dump(mode="json"), "text": sha256_text(resumed.text)}
        return bound

    @property
    def called(self) -> str:
        """Return what to call a run that nobody named: its one agent, else its mode."""
        return self.mode if self.items or not self.steps else self.steps[0].agent

    def to_plan(self, *, run_id: str, token: str, created_at: str) -> LaunchPlan:
        """Give the draft its identity."""
        name = self.name or f"{self.called}-{short_id(run_id)}"
        return LaunchPlan(
            **self.body(), run_id=run_id, token=token, created_at=created_at, digest=self.digest, name=name
        )


def digest_of(contract: dict[str, Any]) -> str:
    """Return the digest of a launch contract."""
    return sha256_text(stable_json(contract))


def with_task(contract: dict[str, Any], task: str) -> dict[str, Any]:
    """Return the contract of a launch of one step whose task alone is another."""
    return {**contract, "steps": [{**contract["steps"][0], "task": sha256_text(task)}]}


def _item_contract(item: PlanItem) -> dict[str, Any]:
    bound = item.model_dump(mode="json", exclude={"title", "phase", "template", "acceptance"})
    accepted = getattr(item, "acceptance", None)
    if accepted is not None:
        bound["acceptance"] = accepted.model_dump(mode="json")
    if isinstance(item, FanOutItem):
        bound["template"] = item.template.contract()
    if isinstance(item, AttachedItem):  # only what is set, as of a step
        bound = {key: kept for key, kept in bound.items() if key not in ("step", "outputs") or kept not in (None, [])}
    return bound


def agents_of(steps: Iterable[StepPlan], items: Iterable[PlanItem] = ()) -> tuple[str, ...]:
    """Return the names of all agents that a plan may start, reviewers and those of fan-outs included."""
    return tuple(dict.fromkeys(step.agent for step in everything(steps, items)))


def output_names(items: Iterable[PlanItem], steps: Iterable[StepPlan]) -> frozenset[str]:
    """Return the names that items and their steps give to outputs."""
    of_items = (item.output_name for item in items if not isinstance(item, StepItem))
    return frozenset(name for name in (*of_items, *(step.output_name for step in steps)) if name)


def outputs_of(steps: Iterable[StepPlan], items: Sequence[PlanItem]) -> tuple[str, ...]:
    """Return the files of the workspace that were asked for as outputs, each once.

    A fan-out's stand for all of its folders. What has a worktree writes there, and an agent's own lies with its run.
    """
    named = [(step, "") for step in steps]
    named += [(one.template, f"dynamic-{at}/*/") for at, one in enumerate(items, 1) if isinstance(one, FanOutItem)]
    paths = (
        f"{step.cwd}/{folder}{step.output.path}" if step.cwd else f"{folder}{step.output.path}"
        for step, folder in named
        if step.output is not None and step.output.explicit and step.worktree is None
    )
    return tuple(dict.fromkeys(paths))


def choices_of(steps: Iterable[StepPlan], items: Iterable[PlanItem] = ()) -> tuple[ModelChoice, ...]:
    """Return the models of all steps that a plan may start, each once, reviewers and those of fan-outs included."""
    choices: list[ModelChoice] = []
    for step in everything(steps, items):
        if step.model not in choices:
            choices.append(step.model)
    return tuple(choices)


def everything(steps: Iterable[StepPlan], items: Iterable[PlanItem] = ()) -> list[StepPlan]:
    """Return all that a plan may start: its steps, the templates of its fan-outs, who reviews each, and all below."""
    planned = [*steps, *(item.template for item in items if isinstance(item, FanOutItem))]
    below = [child for step in planned for child in everything(step.children)]
    return planned + [step.reviewer for step in planned if step.reviewer is not None] + below


def label_of(task: str) -> str:
    """Return the first line of a task, cut to 160 characters, for the plan and the launcher's own cell only."""
    return shortened(next((line.strip() for line in task.splitlines() if line.strip()), ""), _LABEL_CHARS)
