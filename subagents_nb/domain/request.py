"""What a person asks for at a launch, before anything was looked up."""

from __future__ import annotations

from typing import Any, Literal

from subagents_nb.domain.base import Value
from subagents_nb.domain.experiments import ExperimentPart
from subagents_nb.domain.flow import Chain
from subagents_nb.domain.given import Real, Time, Whole
from subagents_nb.domain.inputs import InputRecord


class Origin(Value):
    """Where a launch was asked for; nothing here is a secret, an absolute path or a host name."""

    surface: Literal["magic", "python", "cli", "test"] = "python"
    session: str = ""  # one kernel, one value: who is told when the run ends
    notebook: str | None = None  # relative to the project
    cell_id: str | None = None
    source_sha256: str | None = None  # of the cell


class LaunchRequest(Value):
    """What a person asks for, before anything was looked up. Texts are verbatim."""

    task: str
    agent: str | None = None
    name: str | None = None
    as_: str | None = None  # how a single step calls its output
    label: str | None = None  # and what views call the step
    goal: str | None = None
    description: str | None = None
    phase: str | None = None
    model: str | None = None
    thinking: str | None = None
    temperature: Real | None = None
    output_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    cwd: str | None = None
    timeout: Time | None = None
    tool_timeout: Time | None = None
    checkpoint: Time | None = None
    max_requests: Whole | None = None
    max_output: Any = None
    output: str | bool | None = None
    output_mode: Literal["inline", "file-only"] | None = None
    reads: tuple[str, ...] | Literal[False] | None = None
    progress: bool | None = None
    acceptance: Any = None
    gate: str | None = None
    agent_contract: Any = None
    gate_on: Any = None
    tool_budget: Any = None
    usage_budget: Any = None
    worktree: Any = None
    max_children: Whole | None = None  # the fan-out budget of the run
    inputs: tuple[InputRecord, ...] = ()  # values of the notebook, made into files already
    experiment: ExperimentPart = ExperimentPart()
    flow: Chain | None = None  # then `task` and the fields above are what its steps leave open
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()
