"""What each key of an agent file may hold, in the spellings of the origin and of Claude Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from subagents_nb.domain.agents.agent import Thinking
from subagents_nb.domain.plans.budgets import WrittenToolBudget
from subagents_nb.domain.plans.options import Option, spellings
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import Count, Milliseconds, Seconds, parse_flag
from subagents_nb.domain.values.reading import Unfit, mapping, matching, must_be, read

AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")

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

# What the origin calls its agents says which of the two they are.
_ROLES = {
    **dict.fromkeys(
        ("reader", "read-only", "readonly", "reviewer", "oracle", "scout", "researcher", "analyst"), "reader"
    ),
    **dict.fromkeys(("writer", "worker"), "writer"),
}

# A comma within brackets belongs to its item: `Bash(git add:*, git log:*)` is one.
_ITEM = re.compile(r"(?:\([^)]*\)|[^,(]|\()+")


def text_list(value: object) -> tuple[str, ...]:
    """Accept comma-separated text, a list, or a list of such texts; `false` means the empty list."""
    return tuple(dict.fromkeys(_items(value)))


def _items(value: object) -> Iterator[str]:
    for entry in value if isinstance(value, list) else [] if value is False else [value]:
        if not isinstance(entry, str):
            raise must_be("a list of texts or text with commas", entry)
        yield from (item for part in _ITEM.findall(entry) if (item := part.strip()))


def _tools(value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tools we have and, as written, those we don't. The word `none` alone means no tools.

    A restricted tool such as `Bash(git log:*)` counts as one we don't have: granting it whole would be more than asked.
    """
    items = text_list(value)
    items = () if [item.lower() for item in items] == ["none"] else items
    known = (TOOL_SPELLINGS[item.lower()] for item in items if item.lower() in TOOL_SPELLINGS)
    return tuple(dict.fromkeys(known)), tuple(item for item in items if item.lower() not in TOOL_SPELLINGS)


def _denied(value: object) -> frozenset[str]:
    """Return the tools of ours that a deny-list takes away; a restricted entry takes away the whole tool."""
    bare = (item.partition("(")[0].strip().lower() for item in text_list(value))
    return frozenset(TOOL_SPELLINGS[item] for item in bare if item in TOOL_SPELLINGS)


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


def _relative_path(path: str) -> str:
    parts = path.removeprefix("./").rstrip("/").split("/")
    if path.startswith(("/", "~")) or any(char in path for char in "\\:\0\n"):
        raise Unfit(f"must hold paths relative to the agent file, not {shown(path)}")
    if any(part in {"", ".", ".."} for part in parts):
        raise Unfit(f"must hold paths below the agent file's folder, without . or .. parts, not {shown(path)}")
    return "/".join(parts)


def _unless_false(value: object) -> object:
    return None if value is False else value


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
    "output": Annotated[PlainText | None, AfterValidator(lambda path: path or None), BeforeValidator(_unless_false)],
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
    "tools": ("tools", Annotated[Any, BeforeValidator(_tools)]),
    "exclude_tools": ("denied", Annotated[Any, BeforeValidator(_denied)]),
    "disallowed_tools": ("denied", Annotated[Any, BeforeValidator(_denied)]),
    "system_prompt_mode": ("prompt_mode", _Mode),
    "prompt_mode": ("prompt_mode", _Mode),
    "inherit_project_context": ("inherit_project_context", Flag),
    "skill": ("skills", Words),
    "skills": ("skills", Words),
    "skill_path": ("skill_paths", _Paths),
    "skill_paths": ("skill_paths", _Paths),
    "output_schema": ("output_schema", _Schema),
    "effort": ("thinking", _TYPES["level"]),
    "disabled": ("disabled", Flag),
    "permission_mode": ("mode", PlainText),
    "acceptance_role": ("role", Annotated[Literal["reader", "writer"], BeforeValidator(_role)]),
    **{key: (one.stored, type_of(one, key)) for key, one in spellings().items()},
}
