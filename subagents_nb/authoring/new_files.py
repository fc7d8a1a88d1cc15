"""New agent files: one of the person's making, or a copy of a built-in or installed agent, to be edited."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.authoring.scope import folder_of
from subagents_nb.catalog import discover, parse_agent, registered_agents, resolve
from subagents_nb.catalog.agent_files import builtin_files
from subagents_nb.catalog.parse import MAX_FILE_BYTES
from subagents_nb.catalog.scan import scan_path
from subagents_nb.catalog.scopes.packages import package_paths
from subagents_nb.catalog.search_paths import SearchPath
from subagents_nb.domain.agents.agent import AgentDefinition, AgentProblem
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import read_plain


@dataclass(frozen=True, slots=True, repr=False)
class AgentChange:
    """What became of an agent: `done` is stable, for programs; `remark` says what else there is to know."""

    name: str
    done: str
    path: Path
    where: str  # the same, as shown
    remark: str = ""

    def __repr__(self) -> str:
        return f"{self.name}: {self.done}: {self.where}{f'; {self.remark}' if self.remark else ''}"


def create_agent(
    name: str,
    prompt: str,
    *,
    description: str,
    tools: str | Sequence[str] | None = None,
    model: str | None = None,
    thinking: str | None = None,
    scope: str = "user",
    cwd: str | os.PathLike[str] | None = None,
) -> AgentChange:
    """Write a new agent file, and never over another.

    Args:
        name: what it is called.
        prompt: what it is told about its work.
        description: what it is for, in one line.
        tools: what it may use, as `"read, grep"`; None: the tools that read; empty: none.
        model: which model it asks, where a launch names none.
        thinking: how hard it thinks.
        scope: `user`, for all projects of yours, or `project`.
        cwd: where the project is looked for; the current directory if None.

    Raises:
        RequestError: it would be no agent, or there is a file or an agent of that name already.
    """
    here = _folder(cwd)
    refuse_runs("agents are the person's to make")
    place = folder_of(scope, here)
    listed = tools if isinstance(tools, str) or tools is None else ", ".join(tools)
    fields = {"description": description, "tools": listed, "model": model, "thinking": thinking}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value is not None]
    text = "\n".join(["---", f"name: {json.dumps(name, ensure_ascii=False)}", *lines, "---", prompt.strip(), ""])
    agent = parse_agent(text, where=f"{place.where}/{name}.md", source=place.source)
    if agent is None:
        raise RequestError("An agent has a name and a description; say in one line what it is for.")
    if isinstance(agent, AgentProblem):
        raise RequestError(f"That would be no agent: {agent.error}.")
    if unknown := agent.extra.get("unsupported_tools"):
        raise RequestError(f"That would be no agent: there are no tools {', '.join(map(str, unknown))}.")  # type: ignore[call-overload]
    if any(one.name == agent.name and one.source == place.source for one in discover(here).agents):
        raise RequestError(f"There is an agent {agent.name!r} already; edit its file: {_where(agent.name, here)}")
    return _write(agent.name, text.encode(), place, here, "created")


def eject_agent(name: str, *, scope: str = "user", cwd: str | os.PathLike[str] | None = None) -> AgentChange:
    """Copy the file of a built-in agent, or of an installed package's, to where it can be edited.

    The copy stands before the original: `user` for all projects of yours, `project` for this one.

    Raises:
        RequestError: there is no such agent, it is a file of yours already, or its place is taken.
    """
    here = _folder(cwd)
    agent = resolve(name, discover(here, registered=registered_agents()))
    if agent.source not in ("builtin", "package"):
        raise RequestError(f"Agent {agent.name!r} is no built-in or installed one; edit it where it is: {agent.where}")
    refuse_runs("agents are the person's to make")
    return _write(agent.name, _source_of(agent), folder_of(scope, here), here, "copied")


def _write(name: str, data: bytes, place: SearchPath, here: Path, done: str) -> AgentChange:
    folder = Path(os.path.realpath(place.path))
    path, where = folder / f"{name}.md", f"{place.where}/{name}.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not DISK.create_once(path, data):
            raise RequestError(f"There is a file {where} already; edit it, or take it away first.")
    except OSError as error:
        raise RequestError(f"{where} can't be written: {error.strerror or error}.") from error
    return AgentChange(name, done, path, where, _remark(name, where, here))


def _remark(name: str, where: str, here: Path) -> str:
    """Say what stands in the way of the new file, or behind it."""
    catalog = discover(here)
    withheld = next((one.error for one in catalog.problems if one.where == where and one.withheld), None)
    if withheld is not None:
        return withheld
    found = next((agent for agent in catalog.agents if agent.name == name), None)
    if found is not None and found.where != where:
        return f"{found.where} stands before it"
    behind = [lower for winner, lower in catalog.shadowed if winner.partition(" ")[0].endswith(f":{name}")]
    return f"it stands before {', '.join(behind)}" if behind else ""


def _where(name: str, here: Path) -> str:
    return next(agent.where for agent in discover(here).agents if agent.name == name)


def _source_of(agent: AgentDefinition) -> bytes:
    if agent.source == "builtin":
        return builtin_files()[agent.where]
    paths = (path for place in package_paths() for path, where in scan_path(place).files if where == agent.where)
    path = next(paths, None)
    if path is None:
        raise RequestError(f"The file of agent {agent.name!r} is gone: {agent.where}")
    return read_plain(path, MAX_FILE_BYTES)


def _folder(cwd: str | os.PathLike[str] | None) -> Path:
    return Path(cwd) if cwd is not None else Path.cwd()
