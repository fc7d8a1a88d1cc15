"""A launch: what a person asks for, and the frozen plan that a runner carries out. The runner decides no policy."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from subagents_nb.domain.agent import AgentDefinition, Thinking
from subagents_nb.domain.base import Document, Value, sha256_text, stable_json
from subagents_nb.domain.ids import short_id
from subagents_nb.domain.models import ModelChoice

Mode = Literal["single", "parallel", "chain"]

DIGEST_PROJECTION = 1
_LABEL_CHARS = 160


class Origin(Value):
    """Where a launch was asked for; nothing here is a secret, an absolute path or a host name."""

    surface: Literal["magic", "python", "cli", "test"] = "python"
    session: str = ""  # one kernel, one value: who is told when the run ends
    notebook: str | None = None  # relative to the project
    cell_id: str | None = None


class LaunchRequest(Value):
    """What a person asks for, before anything was looked up. Texts are verbatim."""

    task: str
    agent: str | None = None
    name: str | None = None
    model: str | None = None
    thinking: str | None = None
    output_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    cwd: str | None = None
    timeout: float | str | None = None
    tool_timeout: float | str | None = None
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()


class StepPlan(Value):
    """One agent, one task, fully resolved."""

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
    tools: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    timeout_s: float | None = None
    tool_timeout_s: float | None = None
    max_requests: int = 50
    output_retries: int = 2

    def contract(self) -> dict[str, Any]:
        """Return what the launch contract binds of this step; prompts enter as hashes."""
        model = self.model.model_dump(mode="json", exclude={"origin", "requested", "key_env", "thinking"})
        return {
            "agent": self.agent_digest,
            "task": sha256_text(self.task),
            "model": model,
            "thinking": self.thinking,
            "system_prompt": sha256_text(self.system_prompt),
            "prompt_mode": self.prompt_mode,
            "tools": sorted(self.tools),
            "output_schema": self.output_schema,
        }


class Resumes(Value):
    """Which run's session a run goes on from."""

    run_id: str
    digest: str  # of the source's launch contract, reported beside the new one


class LaunchPlan(Document):
    """The frozen run. Written once by the launcher, read by the runner and by nobody who shows it to a page."""

    kind: Literal["plan"] = "plan"
    mode: Mode = "single"
    name: str
    digest: str
    created_at: str  # UTC, ISO 8601
    token: str  # instance token: says which process is this run's, no secret
    cwd: str
    steps: tuple[StepPlan, ...] = Field(min_length=1)
    timeout_s: float | None
    # Variables that tools may see although their names look secret.
    tool_env: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()
    resumes: Resumes | None = None
    notify_command: tuple[str, ...] = ()
    checkpoint_s: float | None = None  # so long before the deadline the agent is asked to leave its findings


class Draft(Value):
    """A plan before it has an id, a name and a clock: what `preflight` shows and what the digest is over."""

    name: str | None
    cwd: str
    steps: tuple[StepPlan, ...]
    timeout_s: float | None
    tool_env: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()
    resumes: Resumes | None = None
    notify_command: tuple[str, ...] = ()
    checkpoint_s: float | None = None

    @property
    def digest(self) -> str:
        """Return the launch contract digest: equal contracts have equal digests, whatever their names and deadlines."""
        bound: dict[str, Any] = {
            "projection": DIGEST_PROJECTION,
            "mode": "single",
            "steps": [step.contract() for step in self.steps],
        }
        if self.resumes is not None:
            bound["resumes"] = self.resumes.run_id
        return sha256_text(stable_json(bound))

    def to_plan(self, *, run_id: str, token: str, created_at: str) -> LaunchPlan:
        """Give the draft its identity."""
        return LaunchPlan(
            run_id=run_id,
            token=token,
            created_at=created_at,
            digest=self.digest,
            name=self.name or f"{self.steps[0].agent}-{short_id(run_id)}",
            cwd=self.cwd,
            steps=self.steps,
            timeout_s=self.timeout_s,
            tool_env=self.tool_env,
            notes=self.notes,
            tags=self.tags,
            origin=self.origin,
            resumes=self.resumes,
            notify_command=self.notify_command,
            checkpoint_s=self.checkpoint_s,
        )


def label_of(task: str) -> str:
    """Return the first line of a task, cut to 160 characters, for the plan and the launcher's own cell only."""
    first = next((line.strip() for line in task.splitlines() if line.strip()), "")
    return first if len(first) <= _LABEL_CHARS else first[: _LABEL_CHARS - 1] + "…"


def definition_digest(agent: AgentDefinition) -> str:
    """Return the digest that a step binds of its agent."""
    return agent.digest()
