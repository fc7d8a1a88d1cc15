"""What tools are called, in agent files, in rules and where they are called."""

from __future__ import annotations

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
_MCP = "mcp__"


def tool_in_rule(written: str) -> str | None:
    """Return what a rule or a list of tools names; None if there is no such tool anywhere."""
    name = written.strip()
    lower = name.lower()
    if lower.startswith("mcp:"):
        server, _, tool = name[4:].partition("/")
        return f"{_MCP}{server}__{tool}".removesuffix("__") if server else None
    if lower.startswith(_MCP):
        whole = f"{_MCP}{name[len(_MCP) :]}".removesuffix("__*")
        return whole if len(whole) > len(_MCP) else None
    if lower in _ELSEWHERE or (lower.startswith("ext:") and len(lower) > len("ext:")):
        return lower
    return _IN_RULES.get(lower)


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
    return named in (tool, "*") or (named.startswith(_MCP) and tool.startswith(f"{named}__"))


def is_ours(tool: str) -> bool:
    """Say whether a tool is one of those that an agent's file may list."""
    return tool in KNOWN_TOOLS
