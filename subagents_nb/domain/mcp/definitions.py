"""What a table says of an MCP server, in Claude's shape: read, and refused with all that is wrong with it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from subagents_nb.domain.agents.environment import carries_secret, is_secret
from subagents_nb.domain.agents.mcp_servers import SERVER_NAME, VARIABLE, McpServer, ServerSource
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import shown, snake
from subagents_nb.domain.values.reading import Unfit, Written, must_be, read

# What other programs keep there: it starts nothing, and grants nothing here.
_NOTED = frozenset({"description", "note", "auto_approve", "always_allow", "timeout"})

MOST_WORDS = 200  # each may name a file, which is looked at before a server is started
_WORD = re.compile(r"\w+")
_FOREIGN = re.compile(r"\$\{(?:(?:env|input|config|command):(?!-)[^}]*|userHome|workspaceFolder)\}")  # of editors


def _names(value: object) -> object:
    """Accept a list of names in place of a mapping: each is handed on as it is."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return {name: f"${{{name}}}" for name in value}
    return value


def _kind(value: object) -> object:
    if value in ("sse", "ws", "websocket"):
        raise must_be("stdio or http; servers are started, or reached by streamable HTTP", value)
    return value


class _Definition(Written):
    type: Annotated[Literal["stdio", "http", "streamable-http"], BeforeValidator(_kind)] | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Annotated[dict[str, str], BeforeValidator(_names)] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    outside_sandbox: bool = False


def read_server(name: str, table: object, *, where: str, source: ServerSource) -> tuple[McpServer | None, list[str]]:
    """Return the server that a table defines, or None and all that is wrong with it, each with its key."""
    if not isinstance(table, Mapping):
        return None, [f"it must be a table with `command` or `url`, not {shown(table)}"]
    noted = {str(key) for key in table if snake(str(key)) in _NOTED}
    found, faults = read(_Definition, {key: value for key, value in table.items() if key not in noted})
    if found is None:
        return None, [str(fault.about(f"`{fault.where}`") if fault.path else fault.at()) for fault in faults]
    kept = {key: getattr(found, key) for key in _Definition.model_fields if key != "type"}
    notes = tuple(sorted(noted - {"description", "note"}))
    server = McpServer(name=name, where=where, source=source, notes=notes, **kept)
    reasons = list(faults_of(server))
    if found.type is not None and (found.type == "stdio") != (found.command is not None):
        reasons.append(f"`type` says {found.type}, and `{'url' if found.command is None else 'command'}` the opposite")
    return (None, reasons) if reasons else (server, [])


def read_servers(
    tables: Mapping[Any, object], *, where: str, source: ServerSource
) -> tuple[list[McpServer], dict[str, str]]:
    """Return the servers that the tables of a file define, and why others can't be used, by their names."""
    servers: list[McpServer] = []
    problems: dict[str, str] = {}
    for name, table in ((str(name), table) for name, table in tables.items()):
        server, reasons = read_server(name, table, where=where, source=source)
        if server is None:
            problems[name] = "; ".join(reasons)
        else:
            servers.append(server)
    return servers, problems


class McpOfAgent(Value):
    """What an agent's file says of servers: names of those that are defined elsewhere, and its own."""

    names: tuple[str, ...] = ()
    servers: tuple[McpServer, ...] = ()


def servers_of_agent(given: object) -> McpOfAgent | None:
    """Read `mcpServers` of an agent's file: names, definitions by name, or a list of both."""
    if given in (None, False, "none"):
        return None
    if isinstance(given, McpOfAgent):
        return given
    names: list[str] = []
    servers: list[McpServer] = []
    for entry in given if isinstance(given, list) else [given]:
        if isinstance(entry, str):
            names += [name for part in entry.split(",") if (name := part.strip())]
        elif isinstance(entry, Mapping):
            found, problems = read_servers(entry, where="", source="user")
            if problems:
                raise ValueError("; ".join(f"{name}: {text}" for name, text in problems.items()))
            servers += found
        else:
            raise must_be("names of MCP servers, or their definitions by name", entry)
    if bad := next((name for name in names if not SERVER_NAME.match(name)), None):
        raise Unfit(f"must hold names of MCP servers, not {shown(bad)}")
    names += [one.name for one in servers]
    return McpOfAgent(names=tuple(dict.fromkeys(names)), servers=tuple(servers))


def faults_of(server: McpServer) -> Iterator[str]:
    """Yield what is wrong with a definition, each with its key."""
    if not SERVER_NAME.match(server.name):
        yield "its name must be 1 to 32 letters, digits, _ or -, without __, beginning with a letter or digit"
    if (server.command is None) == (server.url is None):
        yield "`command` or `url` must say how it is reached: one of the two"
    if server.url is not None and not re.match(r"https?://[^\s/]+|\$\{", server.url):
        yield f"`url` must begin with http:// or https://, not {server.url!r}"
    for key in ("args", "cwd") if server.command is None else ("headers",):
        if getattr(server, key):
            yield f"`{key}` is for a server that is {'started' if server.command is None else 'reached by url'}"
    named = set(server.env)
    elsewhere = {"command": server.command, "cwd": server.cwd, "url": server.url}
    elsewhere |= {f"args[{at}]": text for at, text in enumerate(server.args)}
    for key, text in elsewhere.items():
        for match in VARIABLE.finditer(text or ""):
            if match[1] not in named and match[2] is None:
                name = match[1]
                yield f'`{key}` uses ${{{name}}}, which `env` does not name; add "{name}": "${{{name}}}" to it'
        if text and carries_secret(text):
            yield f"`{key}` holds a secret, which every run would keep; write it as ${{NAME}} and name that in `env`"
    texts = {**elsewhere, **{f"env.{key}": text for key, text in server.env.items()}}
    if sum(len(_WORD.findall(text or "")) for text in texts.values()) > MOST_WORDS:
        yield f"its command line and `env` have more than {MOST_WORDS} words; put them into a file that is named there"
    for key, text in {**texts, **{f"headers.{key}": text for key, text in server.headers.items()}}.items():
        if foreign := _FOREIGN.search(text or ""):
            yield f"`{key}` uses {shown(foreign[0])}, for which nothing is put in here; write ${{NAME}}"
    for kind, values in (("env", server.env), ("headers", server.headers)):
        for key, text in values.items():
            if kind == "env" and (not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or key.startswith("SUBAGENTS_")):
                yield f"`env.{key}` is no variable that a server can be given"
            bare = VARIABLE.sub("", text).strip()
            if bare and _is_secret(kind, key, bare):
                yield f"`{kind}.{key}` holds a secret, which every run would keep; write ${{NAME}} and set that"


def _is_secret(kind: str, key: str, bare: str) -> bool:
    if kind == "headers" and bare.lower() in ("bearer", "basic", "token"):
        return False  # the rest of it is a variable
    return key.lower() in ("authorization", "cookie") or is_secret(key.replace("-", "_"), bare)
