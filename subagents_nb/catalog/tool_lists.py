"""Lists of tools as agent files write them, and the agents that a list of tools lets an agent delegate to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from subagents_nb.domain.agents.agent import ALL_AGENTS, READ_TOOLS
from subagents_nb.domain.policy.policy_rules import BadRule, parse_rule
from subagents_nb.domain.policy.tool_names import MCP, mcp_tool
from subagents_nb.domain.policy.tool_names import TOOL_SPELLINGS as TOOL_SPELLINGS
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.reading import Unfit, must_be

# What delegating is called elsewhere: `Agent(scout, reviewer)` names those it may be done to, `Agent` alone is for all.
_DELEGATING = frozenset({"agent", "task", "delegate", "subagent"})
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")

_SIGN = re.compile("[,(]")


def text_list(value: object) -> tuple[str, ...]:
    """Accept comma-separated text, a list, or a list of such texts; `false` means the empty list."""
    return tuple(dict.fromkeys(_items(value)))


def _items(value: object) -> Iterator[str]:
    for entry in value if isinstance(value, list) else [] if value is False else [value]:
        if not isinstance(entry, str):
            raise must_be("a list of texts or text with commas", entry)
        yield from (item for part in _parts(entry) if (item := part.strip()))


def _parts(text: str) -> Iterator[str]:
    """Split at commas. One within brackets belongs to its item: `Bash(git add:*, git log:*)` is one."""
    start = at = 0
    while (sign := _SIGN.search(text, at)) is not None:
        at = sign.end()
        if sign[0] == "(":
            at = max(at, text.find(")", at) + 1)
        else:
            yield text[start : at - 1]
            start = at
    yield text[start:]


@dataclass(frozen=True, slots=True)
class ToolList:
    """A list of tools, read: those we have, as written those we don't, and the agents that may be delegated to."""

    tools: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None  # None: it says nothing of delegating
    rules: tuple[str, ...] = ()  # what of them, where one is granted in part


def tools_of(value: object) -> ToolList:
    """Read the tools an agent has. The word `none` alone means no tools.

    Who is granted `Bash(git log:*)` has the tool, and a rule for what of it.
    """
    if isinstance(value, Mapping):
        return _switched(value)
    items = text_list(value)
    tools: dict[str, None] = {}
    unknown: list[str] = []
    agents: list[str] = []
    rules: dict[str, None] = {}
    for item in () if [item.lower() for item in items] == ["none"] else items:
        if (named := _delegated(item)) is not None:
            agents += named
        elif (tool := TOOL_SPELLINGS.get(item.lower()) or mcp_tool(item)) is not None:
            tools[tool] = rules[tool] = None
        elif parts := _in_part(item):
            tools[TOOL_SPELLINGS[item.lower().partition("(")[0].strip()]] = None
            rules |= dict.fromkeys(parts)
        else:
            unknown.append(item)
    restricted = tuple(rules) if any("(" in rule for rule in rules) else ()
    return ToolList(tuple(tools), tuple(unknown), _together(agents) or None, restricted)


def _in_part(item: str) -> tuple[str, ...]:
    """Return the rules of a tool that is granted in part; none if it is no tool of ours, or can't be read."""
    name, bracket, rest = item.partition("(")
    if not bracket or name.strip().lower() not in TOOL_SPELLINGS or not item.endswith(")"):
        return ()
    rules = tuple(f"{name.strip()}({part.strip()})" for part in rest[:-1].split(","))
    try:
        return rules if all(parse_rule(rule) for rule in rules) else ()
    except BadRule:
        return ()


def _switched(value: Mapping[object, object]) -> ToolList:
    """Read tools that are switched on and off, one a key; what is not named is as where none are: those that read."""
    if wrong := [name for name, on in value.items() if not isinstance(on, bool)]:
        raise Unfit(f"must switch tools by true or false, which {shown(wrong[0])} does not")
    off = tools_of([str(name) for name, wanted in value.items() if not wanted])
    on = [*READ_TOOLS, *(str(name) for name, wanted in value.items() if wanted)]
    found = tools_of([name for name in on if (TOOL_SPELLINGS.get(name.lower()) or mcp_tool(name)) not in off.tools])
    return replace(found, agents=found.agents if off.agents is None else ())


def denied_of(value: object) -> ToolList:
    """Read the tools that a deny-list takes away; a restricted entry takes away the whole tool.

    Raises:
        Unfit: an entry means tools of servers, or all, in a way that can't be read.
    """
    items = text_list(value)
    bare = [item.partition("(")[0].strip() for item in items]
    tools = dict.fromkeys(tool for item in bare if (tool := TOOL_SPELLINGS.get(item.lower()) or mcp_tool(item)))
    for name in bare:  # what can't be read would guard nothing, and nobody would know
        if name == "*" or (name.lower().startswith("mcp") and mcp_tool(name) is None):
            raise Unfit(
                f"must hold tools; {shown(name)} names none: write mcp:SERVER, or mcp:SERVER/TOOL for one of them"
            )
    agents = [name for item in items for name in _delegated(item) or ()]
    return ToolList(tuple(tools), agents=_together(agents) or None)


def of_servers(denied: Iterable[str]) -> tuple[str, ...]:
    """Return which of them are tools of MCP servers: where a whole server is granted, rules deny single ones."""
    return tuple(tool for tool in denied if tool.startswith(MCP))


def allowed_agents(value: object) -> tuple[str, ...]:
    """Read the names of the agents that may be delegated to; `*` is for all, `none` or `false` for no one."""
    names = text_list(value)
    if [name.lower() for name in names] == ["none"]:
        return ()
    for name in names:
        if name != ALL_AGENTS and not AGENT_NAME.match(name):
            raise Unfit(f"must hold names of agents, or {ALL_AGENTS} for all, not {shown(name)}")
    return _together(names)


def narrowed(
    listed: tuple[str, ...] | None, by_tools: tuple[str, ...] | None, denied: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return whom an agent may delegate to, of what its file says in several places: the narrowest of it."""
    lists = [names for names in (listed, by_tools) if names is not None]
    if not lists:
        return None if denied is None else ()
    tools = lists[0]
    for names in lists[1:]:
        tools = names if ALL_AGENTS in tools else tools if ALL_AGENTS in names else _both(tools, names)
    if denied is None:
        return tools
    if ALL_AGENTS in tools or ALL_AGENTS in denied:  # all but some is no list that could be shown or frozen
        return ()
    return tuple(name for name in tools if name not in denied)


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in one if name in other)


def _together(names: Iterable[str]) -> tuple[str, ...]:
    tools = tuple(dict.fromkeys(names))
    return (ALL_AGENTS,) if ALL_AGENTS in tools else tools


def _delegated(item: str) -> tuple[str, ...] | None:
    """Return whom an entry of a tool list lets an agent delegate to; None for another tool, or names that are none."""
    tool, bracket, rest = item.partition("(")
    if tool.strip().lower() not in _DELEGATING:
        return None
    if not bracket:
        return (ALL_AGENTS,)
    names = text_list(rest.rstrip().removesuffix(")"))
    return names if all(name == ALL_AGENTS or AGENT_NAME.match(name) for name in names) else None
