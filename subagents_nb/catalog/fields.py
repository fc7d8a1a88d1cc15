"""What each key of an agent file may hold, in the spellings of the origin and of Claude Code."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from subagents_nb.catalog.tool_lists import AGENT_NAME, TOOL_SPELLINGS, allowed_agents, denied_of, text_list, tools_of
from subagents_nb.domain.agents.agent import PARENT_ANSWERS_S, PromptCache, Thinking
from subagents_nb.domain.agents.memory import MemoryChoice
from subagents_nb.domain.mcp.definitions import servers_of_agent
from subagents_nb.domain.plans.budgets import WrittenToolBudget
from subagents_nb.domain.plans.options import Option, spellings
from subagents_nb.domain.policy.policy_rules import BadRule, parse_rule
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import Count, Milliseconds, Seconds, parse_flag, parse_whole
from subagents_nb.domain.values.reading import Unfit, mapping, matching, must_be, read
from subagents_nb.domain.values.words import parse_duration

# What the origin calls its agents says which of the two they are.
_ROLES = {
    **dict.fromkeys(
        ("reader", "read-only", "readonly", "reviewer", "oracle", "scout", "researcher", "analyst"), "reader"
    ),
    **dict.fromkeys(("writer", "worker"), "writer"),
}


def _permissions(value: object) -> dict[str, tuple[str, ...]]:
    """Return the rules of a file by what they say: as lists, or as a verdict for each tool."""
    if value in (None, False):
        return {}
    if not isinstance(value, dict):
        raise must_be("a mapping: allow, ask and deny with rules, or a tool with one of these words", value)
    found: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for key, tools in value.items():
        if key in found:
            kind, rules = key, text_list(tools)
        elif isinstance(tools, str) and tools in found:
            kind, rules = tools, (str(key),)
        else:
            raise Unfit(f"has neither rules for allow, ask or deny, nor one of these words, at {shown(key)}")
        for rule in rules:
            try:
                parse_rule(rule)
            except BadRule as error:
                raise ValueError(f"rule {rule!r} {error}; it would guard nothing") from None
        found[kind].extend(rules)
    return {key: tuple(rules) for key, rules in found.items()}


def _role(value: object) -> object:
    return _ROLES.get(value.lower().replace("_", "-").replace(" ", "-"), value) if isinstance(value, str) else value


def _acceptance(value: object) -> object:
    """Accept a word, `false` or a mapping; what it asks for is for planning to read."""
    if value is False or isinstance(value, dict):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise must_be("attested, checked, false or a mapping", value)


def _tool_budget(value: object) -> object:
    """Accept what is a budget; tools may be spelled as elsewhere."""
    if value is False:
        return None
    if isinstance(value, dict) and isinstance(value.get("block"), str | list):
        value = {**value, "block": [TOOL_SPELLINGS.get(name.lower(), name) for name in text_list(value["block"])]}
    return value


def well_formed(kind: type[BaseModel]) -> AfterValidator:
    """Take what can be read as such a value, and leave it as it was written: planning reads it."""

    def checked(value: Any) -> Any:
        _, faults = read(kind, value) if value is not None else (None, ())
        if faults and not faults[0].path:
            raise ValueError(faults[0].text) if faults[0].sentence else Unfit(faults[0].text)
        if faults:
            raise Unfit(f"has a fault: {'; '.join(fault.at() for fault in faults)}")
        return value

    return AfterValidator(checked)


def _asks(value: object) -> object:
    """Accept whom an agent asks first: `person`, `parent`, or `{parent: 2m}`, how long its parent has for an answer."""
    if value in (None, "person"):
        return None
    if value == "parent":
        return PARENT_ANSWERS_S
    if isinstance(value, dict) and list(value) == ["parent"]:
        try:
            return parse_duration(value["parent"])
        except ValueError as error:
            raise Unfit(f"has a fault: parent: {error}") from None
    raise Unfit(f"must be person, parent or {{parent: TIME}}, not {shown(value)}")


def _relative_path(path: str) -> str:
    parts = path.removeprefix("./").rstrip("/").split("/")
    if path.startswith(("/", "~")) or any(char in path for char in "\\:\0\n"):
        raise Unfit(f"must hold paths relative to the agent file, not {shown(path)}")
    if any(part in {"", ".", ".."} for part in parts):
        raise Unfit(f"must hold paths below the agent file's folder, without . or .. parts, not {shown(path)}")
    return "/".join(parts)


def _memory(value: object) -> object:
    """Accept a scope, or a mapping of scope and path; `false` means none."""
    if value is False:
        return None
    asked = {"scope": value} if isinstance(value, str) else value
    if not isinstance(asked, dict) or asked.get("scope") not in ("user", "project"):
        raise must_be("user, project, or a mapping of scope and path", value)
    return asked


def _unless_false(value: object) -> object:
    return None if value is False else value


def _depth(value: object) -> object:
    """Accept a whole number from 0: 0 lets an agent delegate nothing."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = parse_whole(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise must_be("a whole number from 0", value)
    return value


def _on_or_off(value: object) -> object:
    return ("on" if value else "off") if isinstance(value, bool) else value  # as YAML reads those words


PlainText: TypeAlias = Annotated[str, AfterValidator(str.strip)]
# Safe in paths, in command lines and on screen.
_NAMED = "1 to 64 letters, digits or . _ - and start with a letter or digit"
AgentName: TypeAlias = Annotated[PlainText, matching(AGENT_NAME.pattern, _NAMED)]
AgentNames: TypeAlias = Annotated[tuple[AgentName, ...], BeforeValidator(text_list)]
Words: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(text_list)]
Flag: TypeAlias = Annotated[bool, BeforeValidator(parse_flag)]
Budget: TypeAlias = Annotated[Any, well_formed(WrittenToolBudget), BeforeValidator(_tool_budget)]

# How a file's value of an option is read: in its own way, else as all of its kind.
_TYPES: dict[str, Any] = {
    "model": Annotated[PlainText, AfterValidator(lambda name: None if name in {"", "inherit"} else name)],
    # `false` is also how YAML reads `off`.
    "level": Annotated[Thinking, BeforeValidator(lambda value: "off" if value is False else value)],
    "prompt_cache": Annotated[PromptCache, BeforeValidator(_on_or_off)],
    "output": Annotated[PlainText | None, AfterValidator(lambda path: path or None), BeforeValidator(_unless_false)],
    "sandbox": Annotated[
        Literal["workspace", "none"], BeforeValidator(lambda value: "none" if value is False else value)
    ],
    "output_mode": Literal["inline", "file-only"],
    "tool_budget": Budget,
    "acceptance": Annotated[Any, BeforeValidator(_acceptance)],
    "text": PlainText,
    "words": Words,
    "flag": Flag,
    "duration": Seconds,
    "count": Count,
    "number": Annotated[float, Field(strict=True)],
    "value": Any,
}


def type_of(option: Option, key: str = "") -> Any:
    """Return what a file's value of an option may be; `key` is how it is spelled there."""
    return Milliseconds if key.endswith("_ms") else _TYPES.get(option.name) or _TYPES[option.kind]


_Mode = Literal["replace", "append"]
_Written = Annotated[dict[str, object], mapping("a JSON Schema written as a mapping")]
_Schema = Annotated[_Written | None, BeforeValidator(_unless_false)]
_Paths = Annotated[tuple[Annotated[str, AfterValidator(_relative_path)], ...], BeforeValidator(text_list)]
# The keys of a file in snake_case: the field that each fills and what it may hold.
KEYS: dict[str, tuple[str, Any]] = {
    "name": ("name", AgentName),
    "description": ("description", PlainText),
    "alias": ("aliases", AgentNames),
    "aliases": ("aliases", AgentNames),
    "tools": ("tools", Annotated[Any, BeforeValidator(tools_of)]),
    "exclude_tools": ("denied", Annotated[Any, BeforeValidator(denied_of)]),
    "disallowed_tools": ("denied", Annotated[Any, BeforeValidator(denied_of)]),
    "agents": ("agents", Annotated[Any, BeforeValidator(allowed_agents)]),
    "allowed_agents": ("agents", Annotated[Any, BeforeValidator(allowed_agents)]),
    "allow_nested_subagents": ("nests", Flag),
    "max_subagent_depth": ("max_depth", Annotated[int, BeforeValidator(_depth)]),
    "asks": ("asks_parent_s", Annotated[float | None, BeforeValidator(_asks)]),
    "default_context": ("context", Literal["fresh", "fork"]),
    "isolation": ("isolation", Annotated[PlainText, BeforeValidator(lambda value: "" if value is False else value)]),
    "worktree": ("worktree", Flag),
    "system_prompt_mode": ("prompt_mode", _Mode),
    "prompt_mode": ("prompt_mode", _Mode),
    "inherit_project_context": ("inherit_project_context", Flag),
    "skill_path": ("skill_paths", _Paths),
    "skill_paths": ("skill_paths", _Paths),
    "memory": ("memory", Annotated[MemoryChoice | None, BeforeValidator(_memory)]),
    "mcp_servers": ("mcp", Annotated[Any, BeforeValidator(servers_of_agent)]),
    "output_schema": ("output_schema", _Schema),
    "effort": ("thinking", _TYPES["level"]),
    "disabled": ("disabled", Flag),
    "disable": ("disabled", Flag),
    "readonly": ("reads_only", Flag),
    "read_only": ("reads_only", Flag),
    "permission_mode": ("mode", PlainText),
    "permission": ("permissions", Annotated[Any, BeforeValidator(_permissions)]),
    "permissions": ("permissions", Annotated[Any, BeforeValidator(_permissions)]),
    "acceptance_role": ("role", Annotated[Literal["reader", "writer"], BeforeValidator(_role)]),
    **{key: (one.stored, type_of(one, key)) for key, one in spellings().items()},
}
