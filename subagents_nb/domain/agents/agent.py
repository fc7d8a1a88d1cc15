"""What an agent file defines, once parsed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from subagents_nb.domain.agents.acting import Acting, Held
from subagents_nb.domain.agents.mcp_servers import McpServer, servers_named
from subagents_nb.domain.agents.memory import MemoryChoice
from subagents_nb.domain.policy.tool_names import ASK_TOOLS as ASK_TOOLS
from subagents_nb.domain.policy.tool_names import DELEGATE as DELEGATE
from subagents_nb.domain.policy.tool_names import KNOWN_TOOLS as KNOWN_TOOLS
from subagents_nb.domain.policy.tool_names import READ_TOOLS as READ_TOOLS
from subagents_nb.domain.policy.tool_names import REPLY as REPLY
from subagents_nb.domain.policy.tool_names import WRITE_TOOLS as WRITE_TOOLS
from subagents_nb.domain.values.base import Value, sha256_text, stable_json
from subagents_nb.domain.values.faults import snake
from subagents_nb.domain.values.thinking import THINKING_LEVELS as THINKING_LEVELS
from subagents_nb.domain.values.thinking import Thinking as Thinking

AgentSource = Literal["builtin", "package", "user", "project", "registered"]
PromptCache = Literal["on", "off", "5m", "30m", "1h", "12h"]
_REVIEWER = "reviewer"  # who reviews where nobody is named
PARENT_ANSWERS_S = 600.0  # how long a parent has for an answer before the person is asked
ALL_AGENTS = "*"  # in `agents`: everybody who is there at the launch


_NO_BEHAVIOUR = {"description", "aliases", "where", "source", "overridden"}


class AgentDefinition(Value):
    """One agent: who it is, what it may use. Frozen; the text it came from is bound by `content_sha256`."""

    name: str
    description: str
    prompt: str = ""
    aliases: tuple[str, ...] = ()
    source: AgentSource = "registered"
    # Where it was read, as shown to people: relative to the project or to the home folder, never absolute.
    where: str = ""
    content_sha256: str = ""
    model: str | None = None  # None or "inherit": the default of the launch
    thinking: Thinking | None = None
    prompt_cache: PromptCache | None = None
    fast: bool | None = None
    tools: tuple[str, ...] | None = None  # None: the read-only tools; empty: none
    # Whom it may delegate to; `*`: all that are there at the launch; None or empty: nobody.
    agents: tuple[str, ...] | None = None
    max_depth: int | None = Field(default=None, ge=0)  # at most so many levels of runs below its own
    asks_parent_s: float | None = Field(
        default=None, gt=0
    )  # so long its questions wait for its parent; then the person
    context: Literal["fresh", "fork"] | None = None  # fork: it begins with a copy of a conversation
    worktree: bool | None = None  # it works in a git worktree of its own
    # Rules on what of its tools it may do.
    deny: tuple[str, ...] | None = None
    ask: tuple[str, ...] | None = None
    allow: tuple[str, ...] | None = None
    # Its processes work in a sandbox, which may let them use the network.
    sandbox: Literal["workspace", "none"] | None = None
    network: bool | None = None
    prompt_mode: Literal["replace", "append"] = "replace"
    inherit_project_context: bool = False
    skills: tuple[str, ...] = ()
    skill_paths: tuple[str, ...] = ()
    memory: MemoryChoice | None = None
    mcp_servers: tuple[McpServer, ...] | None = None  # of its own; their tools stand among the others
    output_schema: dict[str, object] | None = None
    temperature: float | None = None
    timeout_s: float | None = Field(default=None, gt=0)
    tool_timeout_s: float | None = Field(default=None, gt=0)
    max_requests: int | None = Field(default=None, gt=0)
    # What the origin's files call output, defaultReads, defaultProgress, toolBudget, acceptanceRole and acceptance.
    output: str | None = None
    output_mode: Literal["inline", "file-only"] | None = None
    reads: tuple[str, ...] | None = None
    progress: bool | None = None
    tool_budget: dict[str, object] | int | None = None
    role: Literal["reader", "writer"] | None = None
    acceptance: dict[str, object] | str | bool | None = None
    extra: dict[str, object] = Field(default_factory=dict)  # unknown keys, kept for the round trip
    # What settings said in place of the file, with where: (("model", "~/.subagents/settings.toml"),).
    overridden: tuple[tuple[str, str], ...] = ()

    @property
    def effective_tools(self) -> tuple[str, ...]:
        """Return the tools this agent has: its own list, else the read-only ones."""
        return READ_TOOLS if self.tools is None else self.tools

    @property
    def acts_by(self) -> tuple[str, ...]:
        """Return what lets this agent act with the rights of the person, beside writing into the workspace."""
        tools = [tool for tool in self.effective_tools if tool in ("bash", "python")]
        tools += [f"mcp:{name}" for name in servers_named(self.effective_tools)]
        if "verify" in str(self.acceptance).lower():
            tools.append("verify")
        return tuple(tools)

    @property
    def reaches(self) -> tuple[str, ...]:
        """Return what it may do beyond the project that may bring it."""
        notes = self.memory is not None and self.memory.scope == "user"
        return (*self.acts_by, *(("notes in your home folder",) if notes else ()))

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Return who is to review its work, as its file says it: keys in any spelling, as they are read elsewhere."""
        asked = self.acceptance if isinstance(self.acceptance, dict) else {}
        found: list[str] = []
        for review in (value for key, value in asked.items() if snake(str(key)) == "review" and value):
            named = review.items() if isinstance(review, dict) else ()
            own = [str(value).strip() for key, value in named if snake(str(key)) == "agent" and value is not None]
            found += own or [_REVIEWER]
        return tuple(found)

    @property
    def verify_commands(self) -> tuple[str, ...]:
        """Return the commands that its file has its work checked by: keys in any spelling, as elsewhere."""
        asked = self.acceptance if isinstance(self.acceptance, dict) else {}
        named = [value for key, value in asked.items() if "verify" in snake(str(key)) and value]
        if not named and "verify" in str(self.acceptance).lower():
            named = [self.acceptance]
        each = [one for value in named for one in (value if isinstance(value, list | tuple) else (value,))]
        return tuple(one if isinstance(one, str) else stable_json(one) for one in each)

    def digest(self) -> str:
        """Return the SHA-256 over what changes the agent's behaviour; description and aliases do not."""
        # Without what is not set, so that a field added later leaves the digests of older agents as they are.
        bound = self.model_dump(mode="json", exclude=_NO_BEHAVIOUR, exclude_none=True)
        return sha256_text(stable_json(bound))


class AgentProblem(Value):
    """An agent file that could not be used, and why."""

    where: str
    source: AgentSource
    error: str
    name: str | None = None
    disabled: bool = False  # by the person or the project: nothing is wrong with it
    withheld: str | None = None  # the name of an agent that it would stand in for, had the person allowed it


class SearchedPlace(Value):
    """One directory that discovery looked into and what it found there."""

    where: str
    source: AgentSource
    state: Literal["absent", "empty", "not a directory", "unreadable", "read"]
    candidates: int = 0


class AgentCatalog(Value):
    """Everything discovery found. Precedence is already applied: one definition a name."""

    agents: tuple[AgentDefinition, ...] = ()
    problems: tuple[AgentProblem, ...] = ()
    places: tuple[SearchedPlace, ...] = ()
    # Pairs (winner, shadowed) for the listing: "project:scout shadows builtin:scout".
    shadowed: tuple[tuple[str, str], ...] = ()
    # Agents of the project that can act, those among them too that were kept out; and those that may not act yet.
    acting: tuple[Acting, ...] = ()
    held: tuple[Held, ...] = ()
    cwd: str = ""  # as shown in diagnostics
