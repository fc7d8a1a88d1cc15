"""What tools are called, in agent files, in rules and where they are called."""

from __future__ import annotations

import re
from collections.abc import Collection

READ_TOOLS = ("read", "list", "find", "grep")
WRITE_TOOLS = ("write", "edit", "bash", "python")
ASK_TOOLS = ("ask",)  # a question to the person
KNOWN_TOOLS = READ_TOOLS + WRITE_TOOLS + ASK_TOOLS
# Spellings in lower case; upper and lower case mean the same.
TOOL_SPELLINGS: dict[str, str] = {
    "read": "read",
    "ls": "list",
    "list": "list",
    "glob": "find",
    "find": "find",
    "grep": "grep",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "bash": "bash",
    "shell": "bash",
    "python": "python",
    "notebook": "python",
    "ask": "ask",
    "askuserquestion": "ask",
}
# Tools that come with a capability, by what rules call them all.
SKILL, MEMORY, DELEGATE = "skill", "memory", "delegate"
REPLY = "reply"  # answers the question of a run that was delegated: rules judge it as its delegation
WAITING_TOOLS = (*ASK_TOOLS, DELEGATE, REPLY)  # at work in them, an agent only waits
_OF_CAPABILITIES = {
    "load_capability": SKILL,
    **dict.fromkeys(("read_memory", "write_memory", "search_memory", "delete_memory"), MEMORY),
    DELEGATE: DELEGATE,
}
_IN_RULES = {
    **TOOL_SPELLINGS, **_OF_CAPABILITIES, SKILL: SKILL, MEMORY: MEMORY, "agent": DELEGATE, "task": DELEGATE,
    "subagent": DELEGATE, "*": "*",
}  # fmt: skip
# Tools of other programs that are not there: a rule for one is carried out by that.
_ELSEWHERE = frozenset({"webfetch", "websearch", "todowrite", "notebookedit", "notebookread", "exitplanmode"})
_OF_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
MCP = "mcp__"  # before the server and the tool, as Claude Code spells them


def tool_in_rule(written: str) -> str | None:
    """Return what a rule or a list of tools names; None if there is no such tool anywhere."""
    name = written.strip()
    lower = name.lower()
    if lower.startswith(("mcp:", MCP)):
        return _of_server(name)
    if lower in _ELSEWHERE or (lower.startswith("ext:") and len(lower) > len("ext:")):
        return lower
    return _IN_RULES.get(lower)


def _of_server(name: str) -> str | None:
    """Return the tool of a server, or the server: `mcp:server/tool` as Claude Code's `mcp__server__tool`."""
    whole = name[4:].replace("/", "__", 1) if name[3] == ":" else name[len(MCP) :]
    whole = whole.removesuffix("__*").removesuffix("__")
    return f"{MCP}{whole}" if _OF_SERVER.match(whole) else None  # a pattern in it would match nothing


def tool_called(name: str, own: Collection[str]) -> str:
    """Return what rules call a tool that is called; `own` are the names of ours that the step has.

    A tool of somebody else that takes the name of one of ours is none of ours: no rule that allows ours allows it.
    """
    if name in own:
        return name
    if name in _OF_CAPABILITIES:
        return _OF_CAPABILITIES[name]
    return f"?{name}" if name.lower() in _IN_RULES else name


def covers(named: str, tool: str) -> bool:
    """Say whether what a rule names is this tool, or the server that it comes from."""
    return named in (tool, "*") or (is_server(named) and tool.startswith(f"{named}__"))


def is_ours(tool: str) -> bool:
    """Say whether a tool is one of those that an agent's file may list."""
    return tool in KNOWN_TOOLS


# --- tools of MCP servers: mcp__server__tool, or mcp__server for all that a server has ---


def mcp_tool(written: str) -> str | None:
    """Return the tool of a server, or the server, that an entry of a list names in any spelling; None for another."""
    if not written.strip().lower().startswith(("mcp:", MCP)):
        return None
    return tool_in_rule(written)


def server_in(tool: str) -> str:
    """Return the server of a tool of one."""
    return tool.removeprefix(MCP).partition("__")[0]


def is_server(tool: str) -> bool:
    """Say whether it stands for all tools of a server."""
    return tool.startswith(MCP) and not tool_of_server(tool)


def tool_of_server(tool: str) -> str:
    """Return what the server itself calls a tool of its own; nothing if the whole server is meant."""
    return tool.removeprefix(MCP).partition("__")[2]


def shown_tool(name: str) -> str:
    """Return a tool as people read it: files/read_file for a server's."""
    return f"{server_in(name)}/{tool_of_server(name)}".rstrip("/") if name.startswith(MCP) else name
