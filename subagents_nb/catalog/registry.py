"""Agents defined in this process by Python code. They reach no other process and no child."""

from __future__ import annotations

from subagents_nb.catalog.discover import as_registered
from subagents_nb.catalog.tool_lists import AGENT_NAME
from subagents_nb.domain.agents.agent import KNOWN_TOOLS, AgentDefinition
from subagents_nb.domain.policy.tool_names import mcp_tool
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.domain.values.faults import shown
from subagents_nb.errors import RequestError

MAX_REGISTERED = 200
MAX_DESCRIPTION = 4096
MAX_PROMPT_BYTES = 1024 * 1024

_registered: dict[str, AgentDefinition] = {}


def register_agent(definition: AgentDefinition) -> AgentDefinition:
    """Make an agent known to this process; the same name again replaces it, as a cell that is run again should.

    Returns the definition as it was stored. It has priority over every file of the same name.
    """
    faults = list(_faults(definition))
    if faults:
        raise RequestError(f"Agent {shown(definition.name)} can't be registered: {'; '.join(faults)}.")
    if definition.name not in _registered and len(_registered) >= MAX_REGISTERED:
        raise RequestError(f"{MAX_REGISTERED} agents are registered already; unregister one first.")
    digest = definition.content_sha256 or sha256_text(definition.prompt)
    stored = as_registered(definition).model_copy(update={"content_sha256": digest})
    _registered[definition.name] = stored
    return stored


def unregister_agent(name: str) -> bool:
    """Forget a registered agent; say whether there was one."""
    return _registered.pop(name, None) is not None


def registered_agents() -> tuple[AgentDefinition, ...]:
    """Return the registered agents, to be handed to `discover`."""
    return tuple(_registered.values())


def _faults(definition: AgentDefinition) -> list[str]:
    faults = [
        f"{shown(name)} is no name" for name in (definition.name, *definition.aliases) if not AGENT_NAME.match(name)
    ]
    if not definition.description.strip():
        faults.append("it has no description")
    if len(definition.description) > MAX_DESCRIPTION:
        faults.append(f"its description is longer than {MAX_DESCRIPTION} characters")
    if len(definition.prompt.encode("utf-8", "replace")) > MAX_PROMPT_BYTES:
        faults.append(f"its prompt is larger than {MAX_PROMPT_BYTES // 1024} KiB")
    unknown = [tool for tool in definition.tools or () if tool not in KNOWN_TOOLS and mcp_tool(tool) != tool]
    if unknown:
        faults.append(f"unknown tools {', '.join(map(shown, unknown))} (known: {', '.join(KNOWN_TOOLS)})")
    return faults
