"""The text of an agent file -> a definition, a problem, or neither. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import create_model

from subagents_nb.catalog import fields
from subagents_nb.catalog.strict_yaml import StrictYaml, YamlRefused
from subagents_nb.catalog.tool_lists import AGENT_NAME, ToolList, narrowed, of_servers
from subagents_nb.domain.agents.agent import (
    ALL_AGENTS,
    ASK_TOOLS,
    READ_TOOLS,
    AgentDefinition,
    AgentProblem,
    AgentSource,
)
from subagents_nb.domain.policy.tool_names import MCP, covers
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.domain.values.faults import snake
from subagents_nb.domain.values.reading import Fault, Written, read
from subagents_nb.domain.values.reasons import Reason

MAX_FILE_BYTES = 64 * 1024
DISABLED = "disabled"  # the code of the one reason that is no fault
MAX_HEAD_BYTES = 16 * 1024  # of frontmatter: reading that takes most of the time

_AgentFile: type[Written] = create_model(  # type: ignore[call-overload]
    "AgentFile", __base__=Written, **{key: (kind | None, None) for key, (_, kind) in fields.KEYS.items()}
)

_YAML = StrictYaml()
_NAME_LINE = re.compile(r"^name[ \t]*:([^\n]*)", re.MULTILINE)


def parse_agent(text: str, *, where: str, source: AgentSource) -> AgentDefinition | AgentProblem | None:
    """Read one agent file.

    Returns None for a file that is no agent: it lacks a name or a description. A file that names itself and can't be
    understood is a problem, with the field at fault in its text. `content_sha256` is over the text without byte order
    mark and with `\\n` newlines, so that a checkout on Windows gives the same.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_FILE_BYTES or len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES:
        return problem_of(text, f"the file is larger than {MAX_FILE_BYTES // 1024} KiB", where=where, source=source)
    try:
        sections = _YAML.sections(text.lstrip())
        if sections is None:
            return None
        head, prompt, above = sections
        if len(head.encode("utf-8", "replace")) > MAX_HEAD_BYTES:
            reason = f"the frontmatter is larger than {MAX_HEAD_BYTES // 1024} KiB"
            return problem_of(text, reason, where=where, source=source)
        above += text.count("\n", 0, len(text) - len(text.lstrip()))
        data = _YAML.load_plain(head, lines_above=above)
    except YamlRefused as error:
        return problem_of(text, str(error), where=where, source=source)
    if _blank(data.get("name")) or _blank(data.get("description")):
        return None
    values, reasons = values_of(data)
    if not reasons:
        values |= {"prompt": prompt, "source": source, "where": where, "content_sha256": sha256_text(text)}
        if own := values.get("mcp_servers"):
            values["mcp_servers"] = [one.model_copy(update={"where": where, "source": source}) for one in own]
        agent, faults = read(AgentDefinition, values)
        if agent is not None:
            return agent
        reasons = _messages(faults)
    off = any(reason.code == DISABLED for reason in reasons)
    name = _usable_name(data["name"])
    return AgentProblem(where=where, source=source, error="; ".join(reasons), name=name, disabled=off)


def problem_of(text: str, reason: str, *, where: str, source: AgentSource) -> AgentProblem | None:
    """Report a file that can't be parsed, if it looks like an agent: it opens with frontmatter that has a name."""
    head = text.lstrip()
    if not head.startswith("---"):
        return None
    match = _NAME_LINE.search(head.split("\n---", 1)[0])
    if match is None or not (name := _name_in(match[1].strip(" \t"))):
        return None
    return AgentProblem(where=where, source=source, error=reason, name=_usable_name(name))


def _name_in(value: str) -> str:
    """Return what stands behind `name:`, without its quotes or its comment."""
    quoted = value[1:].partition(value[0]) if value[:1] in ("'", '"') else ("", "", "")
    return quoted[0] if quoted[1] else re.split(r"(?:\A|[ \t])#", value, maxsplit=1)[0].rstrip(" \t")


def values_of(data: Mapping[str, object]) -> tuple[dict[str, Any], list[Reason]]:
    """Turn the frontmatter into the arguments of a definition, or say what is wrong with it, each with its key."""
    extra = {key: value for key, value in data.items() if snake(key) not in fields.KEYS}
    own = {key: [] if value is None and key == "tools" else value for key, value in data.items() if key not in extra}
    written, faults = read(_AgentFile, own)
    reasons = _messages(faults)
    values: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key in own:
        field, name = fields.KEYS[snake(key)][0], snake(key)
        if field in spelled:
            reasons.append(Reason(f"fields `{spelled[field]}` and `{key}` mean the same: keep one", path=(key,)))
        spelled[field] = key
        if written is not None and name in written.model_fields_set:
            values[field] = getattr(written, name)
    if reasons:
        return {}, reasons
    values["aliases"] = _without(values.get("aliases", ()), {values["name"]})
    extra.pop("unsupported_tools", None)  # ours to say, not the file's
    if values.pop("disabled", False):
        return {}, [
            Reason(
                "it is disabled there: take `disabled: true` out to use it", path=(spelled["disabled"],), code=DISABLED
            )
        ]
    mode = values.pop("mode", "default")
    reads_only = values.pop("reads_only", False) or mode == "plan"
    values |= _tools(values, extra, reads_only=reads_only)
    if (isolation := values.pop("isolation", None)) == "worktree":
        if values.setdefault("worktree", True) is False:
            opposite = "`isolation: worktree` and `worktree: false` say the opposite: keep one"
            return {}, [Reason(opposite, path=(spelled["isolation"],))]
    elif isolation is not None:
        extra[spelled["isolation"]] = isolation
    values.pop("permissions", None)
    if mode not in ("plan", "default"):
        extra[spelled["mode"]] = mode
    return {**values, "extra": extra}, []


def _messages(faults: Iterable[Fault]) -> list[Reason]:
    return [fault.about(f"field `{fault.key}`") if fault.path else fault.at() for fault in faults]


def _tools(values: dict[str, Any], extra: dict[str, object], *, reads_only: bool) -> dict[str, object]:
    """Apply the deny-list and note the tools we don't have; who only plans keeps those that read, and does it alone."""
    granted, denied = values.get("tools"), values.pop("denied", None) or ToolList()
    by_tools = granted.agents if granted else None
    if (nests := values.pop("nests", None)) is not None:
        by_tools = by_tools or (ALL_AGENTS,) if nests else ()
    agents = narrowed(values.get("agents"), by_tools, denied.agents)
    if granted and granted.unknown:
        extra["unsupported_tools"] = list(granted.unknown)
    tools = granted.tools if granted else None
    if (said := values.pop("mcp", None)) is not None:
        named = [f"{MCP}{name}" for name in said.names]
        tools = READ_TOOLS if tools is None else tools
        tools += tuple(name for name in named if not any(covers(name, tool) for tool in tools))
    if denied.tools:
        tools = tuple(
            tool
            for tool in (READ_TOOLS if tools is None else tools)
            if not any(covers(one, tool) for one in denied.tools)
        )
    if reads_only:
        tools = tools and tuple(tool for tool in tools if tool in READ_TOOLS + ASK_TOOLS)
        agents = agents and ()
    rules = {"allow": granted.rules if granted else (), "deny": of_servers(denied.tools)}
    for key, more in (values.get("permissions") or {}).items():
        rules[key] = (*rules.get(key, ()), *more)
    return {
        "tools": tools,
        "agents": agents,
        **({"mcp_servers": said.servers} if said is not None and said.servers else {}),
        **{key: tuple(dict.fromkeys(more)) for key, more in rules.items() if more},
    }


def _without(items: object, unwanted: set[object]) -> tuple[object, ...]:
    return tuple(item for item in items if item not in unwanted) if isinstance(items, tuple) else ()


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _usable_name(name: object) -> str | None:
    """Return a name that may block others of the same name; a hostile one blocks nothing."""
    return name.strip() if isinstance(name, str) and AGENT_NAME.match(name.strip()) else None
