"""Settings after all their sources were merged."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from subagents_nb.domain.agents.agent import PromptCache, Thinking
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.override import AgentOverride
from subagents_nb.domain.policy.policy import Ceiling
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.reading import must_be

ReusePolicy = Literal["never", "tracked", "complete"]
REUSE_POLICIES: tuple[ReusePolicy, ...] = get_args(ReusePolicy)


class Endpoint(Value):
    """An OpenAI-compatible server of the user's own."""

    base_url: str
    api: Literal["chat", "responses"] = "chat"
    key_env: str | None = None  # the variable that holds the key; None: no key is sent
    # How structured output is asked for: by a tool (most servers), by response_format, or in the prompt.
    output_mode: Literal["tool", "native", "prompted"] = "tool"
    default_model: str | None = None

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if not re.match(r"https?://[^\s/]+", value):
            raise must_be("an address that starts with http:// or https://", value)
        return value.rstrip("/")


class Settings(Value):
    """Effective settings: project over user over defaults; endpoints come from the user only."""

    default_model: str | None = None
    default_agent: str = "delegate"
    default_thinking: Thinking | None = None
    prompt_cache: PromptCache | None = None
    response_aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # names that a model may answer by
    timeout_s: float = Field(default=1800.0, gt=0)
    max_requests: int = Field(default=50, gt=0)
    tool_timeout_s: float | None = Field(default=None, gt=0)
    checkpoint_s: float | None = Field(default=None, gt=0)
    max_live_runs: int = Field(default=16, gt=0)
    max_children: int = Field(default=64, gt=0)  # steps that one run may ever start
    max_parallel: int = Field(default=20, gt=0)  # steps that one run works on at a time
    group_concurrency: int = Field(default=4, gt=0)  # of one parallel group or fan-out
    python_memory_mb: int = Field(default=2048, gt=0)  # what the python tool's kernel may take
    patience: AttentionSettings = AttentionSettings()  # when to point at a run
    max_output: Any = None  # of a step that says nothing, as at a launch
    keep_days: float = Field(default=30.0, gt=0)
    reuse: ReusePolicy = "tracked"  # which runs of the same contract may stand in for a new one
    # What a step or a run may use, as they are asked for at a launch; planning reads them.
    tool_budget: Any = None
    usage_budget: Any = None
    max_items: int | None = Field(default=None, ge=0)  # of a fan-out that names none
    # Of the kernel that launches, in no file: what holds where neither step nor agent says it.
    acceptance: Any = None
    output_mode: Literal["inline", "file-only"] | None = None
    progress: bool | None = None
    # A command that is told on standard input when a run asks the person, may need a look or ends without a result.
    notify_command: tuple[str, ...] = ()
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)
    # Variables that the tools an agent starts may see although their names look secret.
    tool_env: tuple[str, ...] = ()
    # Projects, and all below, that may act: by scripts, by commands of their agents, by names of built-in agents.
    trusted_folders: tuple[str, ...] = ()
    # What files say of agents in place of their own files, nearer ones later.
    agents: tuple[AgentOverride, ...] = ()
    mcp: tuple[McpServer, ...] = ()  # servers that files of settings define; the nearer one of a name
    # What the managed file, the user and the project allow at most, in this order; none says what it does not limit.
    ceilings: tuple[Ceiling, ...] = ()
    # As files say them; what they forbid stands among the ceilings.
    sandbox: Literal["workspace", "none"] | None = None
    network: bool | None = None
    # What a project's file says of limits beyond the person's word, which then counts; and beyond the defaults above.
    held_back: tuple[str, ...] = ()
    raised: tuple[str, ...] = ()
    # Where each value came from, for `doctor`: {"default_model": "~/.subagents/settings.toml"}.
    origins: dict[str, str] = Field(default_factory=dict)

    @property
    def limits(self) -> dict[str, float | None]:
        """Return the limits that hold for an agent which says nothing of them, by field."""
        return {name: getattr(self, name) for name in ("timeout_s", "tool_timeout_s", "max_requests")}
