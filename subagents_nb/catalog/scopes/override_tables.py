"""The tables `[agents.NAME]` of a settings file, read as the frontmatter of an agent's file is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import create_model

from subagents_nb.catalog import fields
from subagents_nb.catalog.tool_lists import AGENT_NAME, ToolList, narrowed
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.mcp_servers import ServerSource
from subagents_nb.domain.agents.override import AgentOverride
from subagents_nb.domain.mcp.definitions import McpOfAgent
from subagents_nb.domain.policy.tool_names import MCP
from subagents_nb.domain.values.faults import shown, snake
from subagents_nb.domain.values.reading import Written, read
from subagents_nb.domain.values.reasons import Reason

# What stands in an agent's file alone, and why, or what does the same here.
_WHO, _LESS = "who an agent is stands in its file", "take tools away by `disallowed_tools`"
_NOT_HERE = {
    **dict.fromkeys(("name", "alias", "aliases"), _WHO),
    **dict.fromkeys(("skill_path", "skill_paths"), "they lie beside its file"),
    **dict.fromkeys(("readonly", "read_only", "permission_mode"), _LESS),
    "isolation": "write `worktree = true`",
}
_HERE = AgentDefinition.model_fields.keys() | {"denied", "disabled", "nests", "permissions", "mcp"}
_KEYS = {key: filled for key, filled in fields.KEYS.items() if key not in _NOT_HERE and filled[0] in _HERE}


@cache
def _table() -> type[Written]:
    """Return what a table may hold; to make it takes ten milliseconds, which a launch without one does not spend."""
    kinds: dict[str, Any] = {key: (kind | None, None) for key, (_, kind) in _KEYS.items()}
    model: type[Written] = create_model("AgentTable", __base__=Written, **kinds)
    return model


def read_overrides(table: object, *, origin: str, by_project: bool, reasons: list[Reason]) -> Iterator[AgentOverride]:
    """Yield what the tables of one file say, after adding what is wrong with them to the reasons."""

    def refuse(text: str) -> None:
        reasons.append(Reason(text, lead=origin, place=origin))

    if not isinstance(table, Mapping):
        return refuse(f"`agents` must be tables: [agents.scout], not {shown(table)}")
    for name, written in table.items():
        if not AGENT_NAME.match(name) or not isinstance(written, Mapping):
            refuse(f"`agents.{name}` must be a table, by the name of an agent: [agents.scout]")
            continue
        for key in (key for key in written if snake(key) in _NOT_HERE):
            refuse(f"`agents.{name}.{key}` is for agent files alone: {_NOT_HERE[snake(key)]}")
        written = {key: value for key, value in written.items() if snake(key) not in _NOT_HERE}  # noqa: PLW2901
        entry, faults = read(_table(), written)
        for fault in faults:
            refuse(fault.about(f"`agents.{name}.{fault.where}`") if fault.path else f"`agents.{name}`: {fault.text}")
        if entry is None:
            continue
        values = {key: getattr(entry, key) for key in map(snake, written) if key in entry.model_fields_set}
        fields: dict[str, Any] = {}
        for key, value in values.items():
            if _KEYS[key][0] in fields:
                refuse(f"`agents.{name}.{_spelled(written, key)}` says what another key says too: keep one")
            fields[_KEYS[key][0]] = value
        if (unknown := _tools(fields)) is not None:
            refuse(f"`agents.{name}.tools` names tools that are not there: {', '.join(unknown)}")
        _servers(fields, origin, "project" if by_project else "user")
        yield AgentOverride(name=name, origin=origin, by_project=by_project, fields=fields)
    return None


def _spelled(written: Mapping[str, Any], key: str) -> str:
    return next((one for one in written if snake(one) == key), key)


def _servers(fields: dict[str, Any], origin: str, source: ServerSource) -> None:
    """Turn what is said of MCP servers into what it adds: their tools, and those that are defined here."""
    said: McpOfAgent | None = fields.pop("mcp", None)
    if said is not None:
        fields["added"] = tuple(f"{MCP}{name}" for name in said.names)
        own = [one.model_copy(update={"where": origin, "source": source}) for one in said.servers]
        fields |= {"mcp_servers": tuple(own)} if own else {}


def _tools(fields: dict[str, Any]) -> tuple[str, ...] | None:
    """Turn the lists of tools into fields of a definition; return those that are not there."""
    listed: ToolList | None = fields.pop("tools", None)
    denied: ToolList | None = fields.pop("denied", None)
    nests = fields.pop("nests", None)
    by_tools = listed.agents if listed else None
    if nests is not None:
        by_tools = by_tools or ("*",) if nests else ()
    agents = narrowed(fields.get("agents"), by_tools, denied.agents if denied else None)
    if agents is not None:
        fields["agents"] = agents
    if listed is not None:
        fields["tools"] = listed.tools
        if listed.rules:  # some are granted in part
            fields["allow"] = listed.rules
    if denied is not None and denied.tools:
        fields["denied"] = denied.tools
    return listed.unknown or None if listed else None
