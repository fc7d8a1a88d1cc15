"""An MCP server as somebody defined it, and as a step has it: frozen in its plan, with no variable put in yet."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import Field

from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.policy.tool_names import MCP, server_in
from subagents_nb.domain.values.base import Value, sha256_text, stable_json

PROJECT_FILE = ".mcp.json"
INSTALL = 'pip install "subagents-nb[mcp]"'
MISSING_EXTRA = f"MCP servers need an extra: {INSTALL}"
KIND = "MCP server"  # among what a project brings
CANT_COMPARE = "starts files that can't be compared"
# A name stands in the names of its tools, mcp__NAME__tool, and has to be found in them again.
SERVER_NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,31}(?<!_)\Z")
ServerSource: TypeAlias = Literal["user", "project", "package", "registered", "builtin"]
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")


class AllowedFiles(Value):
    """What the person's yes to a server of a project was for, beside its definition."""

    project: str  # the folder of the project, whole
    way: str = "."  # from where the step works to that folder, or to what stands for it in a worktree
    files: dict[str, str] = Field(default_factory=dict)  # that its command line names; by path in the project: SHA-256


class McpServer(Value):
    """One server: a command, or an address. Texts are as they were written, `${NAME}` and all."""

    name: str
    where: str = ""  # the file, as shown to people; it decides nothing
    source: ServerSource = "user"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None  # None: where the step works
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    outside_sandbox: bool = False  # asked over HTTP from a sandbox that has no network; counts where the person says it
    notes: tuple[str, ...] = ()  # keys that are not carried out, as written
    allowed: AllowedFiles | None = None  # in a plan; None: nobody had to allow it

    @property
    def wants(self) -> tuple[str, ...]:
        """Return the variables of the person's that it can't be without: no value stands for them in the file."""
        return self._variables(also=False)

    def _variables(self, *, also: bool) -> tuple[str, ...]:
        """Return the variables of the person's that it is given; `also` those that it can be without."""
        texts = (*self.env.values(), *self.headers.values())
        found = (match[1] for text in texts for match in VARIABLE.finditer(text) if also or match[2] is None)
        return tuple(dict.fromkeys(found))

    @property
    def says(self) -> str:
        """Return what it does, for people: the command with its arguments, or the address."""
        return self.url if self.url is not None else shlex.join((self.command or "", *self.args))

    def contract(self) -> dict[str, Any]:
        """Return what the launch contract binds: command, arguments, and the names of variables."""
        bound = self.model_dump(mode="json", include={"name", "command", "args", "cwd", "url"}, exclude_defaults=True)
        named = {
            "env": sorted(self.env),
            "headers": sorted(self.headers),
            "variables": sorted(self._variables(also=True)),
        }
        return bound | {key: names for key, names in named.items() if names}

    def text(self) -> str:
        """Return the definition as a person compares it: what of it acts, a line each."""
        shown = {"command": self.command, "args": list(self.args), "env": self.env, "cwd": self.cwd, "url": self.url}
        lines = {key: value for key, value in {**shown, "headers": self.headers}.items() if value}
        return "".join(f"{key} = {stable_json(value)}\n" for key, value in lines.items())

    def acting(self, files: Mapping[str, str], unseen: Iterable[str] = ()) -> Acting:
        """Return it as something that acts; `files` are hashes of those that its command line names.

        `unseen` is what it may start or read besides, in words.
        """
        text = self.text()
        own = {self.where: sha256_text(text)}
        given, beside = ", ".join(self._variables(also=True)), ", ".join(unseen)
        more = (f"is given {given}" if given else "", f"{CANT_COMPARE}: {beside}" if beside else "")
        does = (self.says, *filter(None, more))
        return Acting(kind=KIND, name=self.name, does=does, files={**own, **files}, text=text)


class McpServers(Value):
    """All servers that can be named from a working directory."""

    servers: dict[str, McpServer] = Field(default_factory=dict)  # by name; the nearest definition
    problems: dict[str, str] = Field(default_factory=dict)  # by name: why the nearest definition can't be used
    broken: tuple[str, ...] = ()  # whole files that can't be read, so that what they define is not known


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """A server with every variable put in: what is started, or asked."""

    argv: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None


class VariableMissing(ValueError):
    """A variable that a definition names is not set; the text says which."""


def ready(
    server: McpServer, variables: Mapping[str, str], tools: Mapping[str, str], *, whole: bool = True
) -> ReadyServer:
    """Return a server with its variables put in: `variables` are the person's, `tools` those that tools may see.

    The person's enter by `env` and `headers` alone; what stands elsewhere is filled from what `env` says. Unless it has
    to be `whole`, nothing stands for a variable that is not set.

    Raises:
        VariableMissing: one is not set.
    """
    filled = partial(_filled, whole=whole)
    env = {key: filled(text, variables) for key, text in server.env.items()}
    headers = {key: filled(text, {**variables, **env}) for key, text in server.headers.items()}
    plain = [filled(text, env) for text in (server.command or "", *server.args)]
    return ReadyServer(
        argv=tuple(plain) if server.command is not None else (),
        environ={**tools, **env},
        cwd=filled(server.cwd, env) if server.cwd is not None else None,
        url=filled(server.url, env) if server.url is not None else None,
        headers=headers,
    )


def secrets_of(server: McpServer, variables: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what a server is given, by names that tell secrets, and which of it is one whatever it is called."""
    made = ready(server, variables, {}, whole=False)
    env, headers = made.environ or {}, made.headers or {}
    given = {f"ENV_{key}": text for key, text in env.items()}
    given |= {f"HEADER_{key.replace('-', '_')}": text for key, text in headers.items()}
    texts = (*server.headers.values(), (server.url or "").partition("?")[2])
    named = {match[1] for text in texts for match in VARIABLE.finditer(text)}
    sure = {f"SENT_{name}": {**variables, **env}.get(name, "") for name in named}
    return given | sure, tuple(sure)


def _filled(text: str, variables: Mapping[str, str], *, whole: bool) -> str:
    def put(match: re.Match[str]) -> str:
        found = variables.get(match[1]) or (match[2] or "")[2:]
        if whole and not found and match[2] is None:
            raise VariableMissing(f"the variable {match[1]} is not set")
        return found

    return VARIABLE.sub(put, text)


def servers_named(tools: Iterable[str]) -> tuple[str, ...]:
    """Return the servers whose tools these are, each once."""
    return tuple(dict.fromkeys(server_in(tool) for tool in tools if tool.startswith(MCP)))
