"""What a person composes: steps, parallel groups, fan-outs and the chain they stand in. Values without any effect.

The shapes are those of the origin system (reference: chains of steps, static groups, expand and collect). A `Chain` is
only ever carried out after planning has resolved and checked it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from subagents_nb.domain.agents.skills import SkillNames
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import Real, Time, Whole

MAX_CONCURRENCY = 64
OnFailure = Literal["stop", "continue"]


class _Composed(Value):
    """Keys as people write them: `as` and `from` are words of Python, so the fields are `as_` and `from_`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), populate_by_name=True, arbitrary_types_allowed=True
    )


class StepOptions(_Composed):
    """What may be said of the work of one step: at the step itself, or at the launch for all that leave it open."""

    agent: str | None = None
    label: str | None = None  # what views call the step
    # Said beside the task, for people: what it is for, what it does, which part of the whole it belongs to.
    goal: str | None = None
    description: str | None = None
    phase: str | None = None
    lane: str | None = None
    model: str | None = None
    thinking: str | None = None
    prompt_cache: str | bool | None = None
    fast: bool | None = None
    temperature: Real | None = None
    output_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    cwd: str | None = None  # of a launch: the directory of the run; of a step: a folder inside it
    timeout: Time | None = None
    tool_timeout: Time | None = None
    checkpoint: Time | None = None  # so long before its deadline it is asked for what it has
    max_requests: Whole | None = None
    max_output: Any = None  # how much of its answer the result holds and later steps are given
    output: str | bool | None = None  # a file for the answer; False: none, even if the agent names one
    output_mode: Literal["inline", "file-only"] | None = None
    reads: tuple[str, ...] | Literal[False] | None = None
    skills: SkillNames = None  # of a step: in place of its agent's; of a chain: beside them
    progress: bool | None = None
    fork: str | None = None  # NAME, or NAME/step 2: the conversation of which it gets a copy, for reference
    # What it may do at most: tools and rules on them, rules that deny, agents to delegate to.
    tools: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    sandbox: str | bool | None = None
    network: bool | None = None
    ignore: tuple[str, ...] | None = None
    acceptance: Any = None
    gate: str | None = None
    agent_contract: Any = None
    gate_on: Any = None
    tool_budget: Any = None
    worktree: Any = None


class Step(StepOptions):
    """One agent on one task. What is None comes from the launch, then from the agent, then from the settings."""

    task: str | None = None  # None: `{task}` in the first place of a chain, `{previous}` in any later one
    as_: str | None = Field(default=None, alias="as")  # name its output, for `{outputs.name}`
    count: Whole = 1  # in a parallel group: so many copies
    session: str | None = None  # NAME, or NAME/step 2: the conversation that it goes on from, as a copy
    # The Python type the structured output comes back as; never written down.
    output_type: Any = Field(default=None, exclude=True, repr=False)


class Together(_Composed):
    """What may be said of several steps together."""

    concurrency: Whole | None = None
    fail_fast: bool = False  # after the first failure start no further sibling
    on_failure: OnFailure = "stop"  # what a failed child means for the rest of the chain
    as_: str | None = Field(default=None, alias="as")
    label: str | None = None
    phase: str | None = None
    worktree: Any = None
    acceptance: Any = None  # of all of them together, when they have ended
    gate: str | None = None
    agent_contract: Any = None  # of it, and of those steps that say nothing
    gate_on: Any = None


class Parallel(Together):
    """Steps that are at work at the same time."""

    steps: tuple[Step, ...]


class Source(_Composed):
    """Where the items of a fan-out come from: an array inside an earlier step's structured output."""

    output: str
    path: str = ""  # a JSON Pointer (RFC 6901); empty: the whole value


class Expand(Together):
    """One step for each item of an array that an earlier step found."""

    from_: Source = Field(alias="from")
    each: Step
    max_items: Whole | None = None
    item: str = "item"
    key: str | None = None  # a JSON Pointer inside the item; None: its number
    on_empty: Literal["skip", "fail"] = "skip"
    collect_schema: dict[str, Any] | None = None


class Attached(_Composed):
    """Another run, finished or at work, whose output the next item goes on from."""

    run: str  # id or name; planning turns it into an id
    step: Whole | None = Field(default=None, ge=0)  # only this step of it; None: what the run came to
    as_: str | None = Field(default=None, alias="as")
    label: str | None = None


class Chain(_Composed):
    """Items in order. `task` is what `{task}` stands for; None: the first step's own task."""

    items: tuple[Step | Parallel | Expand | Attached, ...]
    task: str | None = None
