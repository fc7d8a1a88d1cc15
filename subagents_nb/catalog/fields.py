"""What each field of an agent file may hold, in the spellings of the origin and of Claude Code.

Every function takes the plain value YAML gave and returns ours, or raises `FieldError` with the end of the sentence
"field `x` ...".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import ValidationError

from subagents_nb.domain.agents.agent import KNOWN_TOOLS, THINKING_LEVELS, Thinking
from subagents_nb.domain.plans.budgets import ToolBudget
from subagents_nb.domain.plans.options import Option
from subagents_nb.domain.values.durations import looks_like_duration, parse_duration
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import parse_flag, parse_whole

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
_READERS = ("reader", "read-only", "readonly", "reviewer", "oracle", "scout", "researcher", "analyst")
_WRITERS = ("writer", "worker")

# A comma within brackets belongs to its item: `Bash(git add:*, git log:*)` is one.
_ITEM = re.compile(r"(?:\([^)]*\)|[^,(]|\()+")


class FieldError(ValueError):
    """The value doesn't fit its field."""


def plain_text(value: object) -> str:
    """Accept text and strip it."""
    if not isinstance(value, str):
        raise FieldError(f"must be text, not {shown(value)} (put it in quotes)")
    return value.strip()


def agent_name(value: object) -> str:
    """Accept a name that is safe in paths, in command lines and on screen."""
    name = plain_text(value)
    if not AGENT_NAME.match(name):
        raise FieldError(
            f"must be 1 to 64 letters, digits or . _ - and start with a letter or digit, not {shown(name)}"
        )
    return name


def agent_names(value: object) -> tuple[str, ...]:
    """Accept a list of names, without repetitions."""
    return tuple(agent_name(name) for name in text_list(value))


def text_list(value: object) -> tuple[str, ...]:
    """Accept comma-separated text, a list, or a list of such texts; nothing and `false` mean the empty list."""
    return tuple(dict.fromkeys(_items(value)))


def _items(value: object) -> Iterator[str]:
    if value is None or value is False:
        return
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, str):
            raise FieldError(f"must be a list of texts or text with commas, not {shown(entry)}")
        yield from (item for part in _ITEM.findall(entry) if (item := part.strip()))


def split_tools(value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tools we have and, as written, those we don't. The word `none` alone means no tools.

    A restricted tool such as `Bash(git log:*)` counts as one we don't have: granting it whole would be more than asked.
    """
    known: dict[str, None] = {}
    unsupported: dict[str, None] = {}
    items = text_list(value)
    for item in () if [item.lower() for item in items] == ["none"] else items:
        tool = TOOL_SPELLINGS.get(item.lower())
        if tool is None:
            unsupported[item] = None
        else:
            known[tool] = None
    return tuple(known), tuple(unsupported)


def denied_tools(value: object) -> frozenset[str]:
    """Return the tools of ours that a deny-list takes away; a restricted entry takes away the whole tool."""
    bare = (item.partition("(")[0].strip().lower() for item in text_list(value))
    return frozenset(TOOL_SPELLINGS[item] for item in bare if item in TOOL_SPELLINGS)


def model_name(value: object) -> str | None:
    """Accept a model; `inherit` and nothing mean the default of the launch."""
    name = "" if value is None else plain_text(value)
    return None if name in {"", "inherit"} else name


def thinking_level(value: object) -> Thinking | None:
    """Accept a level; `false`, which is also how YAML reads `off`, means off."""
    if value is None:
        return None
    if value is False:
        return "off"
    for level in THINKING_LEVELS:
        if value == level:
            return level
    raise FieldError(f"must be one of {', '.join(THINKING_LEVELS)}, not {shown(value)}")


def prompt_mode(value: object) -> Literal["replace", "append"]:
    """Accept `replace` or `append`; nothing means replace."""
    if value is None or value == "replace":
        return "replace"
    if value == "append":
        return "append"
    raise FieldError(f"must be replace or append, not {shown(value)}")


def flag(value: object) -> bool:
    """Accept true or false; nothing means false."""
    try:
        return value is not None and parse_flag(value)
    except ValueError as error:
        raise FieldError(f"must be true or false, not {shown(value)}") from error


def output_file(value: object) -> str | None:
    """Accept a path; nothing and `false` mean no file. Whether it may be written is for planning to say."""
    return None if value is None or value is False else plain_text(value) or None


def output_mode(value: object) -> Literal["inline", "file-only"] | None:
    """Accept `inline` or `file-only`; nothing means no answer."""
    if value is None or value == "inline" or value == "file-only":
        return value
    raise FieldError(f"must be inline or file-only, not {shown(value)}")


def tool_budget(value: object) -> dict[str, object] | int | None:
    """Accept a number of calls, or a mapping with hard, soft and block; tools may be spelled as elsewhere."""
    if value is None or value is False:
        return None
    if not isinstance(value, dict):
        return whole_number(value)
    budget = dict(value)
    if "block" in budget:
        budget["block"] = [TOOL_SPELLINGS.get(name.lower(), name) for name in text_list(budget["block"])]
        unknown = [name for name in budget["block"] if name != "*" and name not in KNOWN_TOOLS]
        if unknown:
            raise FieldError(f"can't block {shown(unknown[0])}: the tools are {', '.join(KNOWN_TOOLS)}, or * for all")
    try:
        ToolBudget.model_validate(budget)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FieldError(f"has a fault: {where + ': ' if where else ''}{first['msg']}") from error
    return budget


def acceptance(value: object) -> dict[str, object] | str | bool | None:
    """Accept a word, `false` or a mapping; what it asks for is for planning to read."""
    if value is None or value is False or isinstance(value, dict):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise FieldError(f"must be attested, checked, false or a mapping, not {shown(value)}")


def acceptance_role(value: object) -> Literal["reader", "writer"] | None:
    """Accept what the agent is: one who reads, or one who changes things. Nothing means no answer."""
    if value is None:
        return None
    word = plain_text(value).lower().replace("_", "-").replace(" ", "-")
    if word in _READERS:
        return "reader"
    if word in _WRITERS:
        return "writer"
    raise FieldError(f"must be reader or writer, not {shown(value)}")


def duration(value: object) -> float | None:
    """Accept seconds as a number, or text such as 90s, 30m, 1h, 500ms; nothing means no answer."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(f"must be seconds, or text such as 90s, 30m or 1h, not {shown(value)}")
    try:
        return parse_duration(value)
    except ValueError as error:
        if isinstance(value, str) and not looks_like_duration(value):
            raise FieldError(f"must be seconds, or text such as 90s, 30m or 1h, not {shown(value)}") from error
        raise FieldError(f"must be above zero and at most 7 days, not {shown(value)}") from error


def milliseconds(value: object) -> float | None:
    """Accept a whole number of milliseconds and return seconds."""
    number = whole_number(value)
    return None if number is None else duration(min(number, 10**12) / 1000)


def whole_number(value: object) -> int | None:
    """Accept a whole number above zero; nothing means no answer."""
    if value is None:
        return None
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = parse_whole(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise FieldError(f"must be a whole number above zero, not {shown(value)}")
    return value


def real_number(value: object) -> float | None:
    """Accept a number; nothing means no answer."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"must be a number, not {shown(value)}")
    return float(value)


def json_schema(value: object) -> dict[str, object] | None:
    """Accept a mapping; whether it is a valid JSON Schema is for planning to say."""
    if value is None or value is False:
        return None
    if isinstance(value, dict):
        return value
    raise FieldError(f"must be a JSON Schema written as a mapping, not {shown(value)}")


def relative_paths(value: object) -> tuple[str, ...]:
    """Accept paths below the folder of the agent file."""
    return tuple(_relative_path(path) for path in text_list(value))


def _relative_path(path: str) -> str:
    parts = path.removeprefix("./").rstrip("/").split("/")
    if path.startswith(("/", "~")) or any(char in path for char in "\\:\0\n"):
        raise FieldError(f"must hold paths relative to the agent file, not {shown(path)}")
    if any(part in {"", ".", ".."} for part in parts):
        raise FieldError(f"must hold paths below the agent file's folder, without . or .. parts, not {shown(path)}")
    return "/".join(parts)


# How a file's value of an option is read: in its own way, else as all of its kind.
READERS: dict[str, Callable[[object], object]] = {
    "model": model_name,
    "thinking": thinking_level,
    "output": output_file,
    "output_mode": output_mode,
    "tool_budget": tool_budget,
    "acceptance": acceptance,
    "text": plain_text,
    "words": text_list,
    "flag": flag,
    "duration": duration,
    "count": whole_number,
    "number": real_number,
    "value": lambda value: value,
}


def reader_of(option: Option, key: str = "") -> Callable[[object], object]:
    """Return how a file's value of an option is read; `key` is how it is spelled there."""
    if key.endswith("_ms"):
        return milliseconds
    return READERS.get(option.name) or READERS[option.kind]
