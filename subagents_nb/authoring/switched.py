"""An agent switched off and on, by a line of settings that is written into the file as it stands, comments and all."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from subagents_nb.authoring.new_files import AgentChange
from subagents_nb.authoring.scope import settings_of
from subagents_nb.catalog import discover, load_settings
from subagents_nb.catalog.resolve import UnknownAgent, near_names
from subagents_nb.catalog.search_paths import SearchPath
from subagents_nb.catalog.trust import MAX_SETTINGS_BYTES
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import read_plain

_HEADER = re.compile(r"^[ \t]*\[[^\n]*$", re.MULTILINE)
_DISABLED = re.compile(r"^[ \t]*disabled[ \t]*=[^\n]*\n?", re.MULTILINE)


def disable_agent(name: str, *, scope: str = "user", cwd: str | os.PathLike[str] | None = None) -> AgentChange:
    """Let an agent be launched no more, for all projects of yours or in this one.

    Raises:
        RequestError: there is no such agent, or the settings can't be written.
    """
    here = Path(cwd) if cwd is not None else Path.cwd()
    place, changed = _switch(name, scope, here, disabled=True)
    return AgentChange(name, "disabled" if changed else "already disabled", place.path, place.where)


def enable_agent(name: str, *, scope: str = "user", cwd: str | os.PathLike[str] | None = None) -> AgentChange:
    """Take back that an agent was disabled in the settings of a scope; say what else still disables it.

    Raises:
        RequestError: there is no such agent, or the settings can't be written.
    """
    here = Path(cwd) if cwd is not None else Path.cwd()
    place, changed = _switch(name, scope, here, disabled=False)
    settings = load_settings(here, environ=os.environ, reserved=PROVIDER_NAMES)
    problems = [one for one in usable_agents(here, settings).problems if one.name == name]
    still = f"still not to be used: {problems[-1].where}: {problems[-1].error}" if problems else ""
    return AgentChange(name, "enabled" if changed else "not disabled there", place.path, place.where, still)


def _switch(name: str, scope: str, here: Path, *, disabled: bool) -> tuple[SearchPath, bool]:
    """Return the settings that say it now, and whether they did not before."""
    catalog = discover(here)
    known = {agent.name for agent in catalog.agents} | {problem.name for problem in catalog.problems}
    if name not in known:
        near = near_names(name, catalog)
        raise UnknownAgent(f"No agent is named {name!r}.{f' Did you mean {near[0]}?' if near else ''}")
    refuse_runs("agents are the person's to enable and disable")
    place = settings_of(scope, here)
    return place, _set(place, name, disabled=disabled)


def _set(place: SearchPath, name: str, *, disabled: bool) -> bool:
    """Write it into the file; say whether there was anything to change."""
    path = Path(os.path.realpath(place.path))
    try:
        data = read_plain(path, MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise RequestError(f"{place.where} can't be read: {error.strerror or error}.") from error
    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RequestError(f"{place.where} is not TOML ({error}); mend it first.") from error
    agents = table.get("agents")
    own = agents.get(name) if isinstance(agents, dict) else None
    if bool(isinstance(own, dict) and own.get("disabled")) is disabled:
        return False
    new = _with_line(text, name, disabled=disabled)
    wanted = _wanted(table, name, disabled=disabled)
    try:
        read_back = tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        read_back = {}
    if _without_empty(read_back) != wanted or len(new.encode()) > MAX_SETTINGS_BYTES:
        word = "write" if disabled else "take out"
        raise RequestError(
            f"{place.where} says it in a way that is not changed here; {word} yourself, below [agents.{name}]: "
            "disabled = true"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if data else None
        DISK.replace(path, new.encode(), durable=True)
        if mode is not None:
            path.chmod(mode)  # whoever else reads it goes on to
    except OSError as error:
        raise RequestError(f"{place.where} can't be written: {error.strerror or error}.") from error
    return True


def _wanted(table: dict[str, Any], name: str, *, disabled: bool) -> dict[str, Any]:
    """Return what the file shall say, to be held against what it says then."""
    agents = dict(table.get("agents") or {})
    own = {key: value for key, value in dict(agents.get(name) or {}).items() if key != "disabled"}
    return _without_empty({**table, "agents": {**agents, name: {**own, "disabled": True} if disabled else own}})


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    """Return the same without tables of agents that say nothing, such as one that holds a comment alone."""
    agents = table.get("agents")
    tables = {name: one for name, one in agents.items() if one} if isinstance(agents, dict) else agents
    return {**{key: value for key, value in table.items() if key != "agents"}, **({"agents": tables} if tables else {})}


def _with_line(text: str, name: str, *, disabled: bool) -> str:
    header = re.compile(rf"^[ \t]*\[[ \t]*agents[ \t]*\.[ \t]*([\"']?){re.escape(name)}\1[ \t]*\][^\n]*(?:\n|\Z)", re.M)
    match = header.search(text)
    if match is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[agents.{_key(name)}]\ndisabled = true\n" if disabled else text
    following = _HEADER.search(text, match.end())
    end = following.start() if following else len(text)
    head, body, rest = text[: match.end()], text[match.end() : end], text[end:]
    body = _DISABLED.sub("", body, count=1)
    if disabled:
        head = head if head.endswith("\n") else f"{head}\n"
        return f"{head}disabled = true\n{body}{rest}"
    if not body.strip():  # a table that says nothing more
        return text[: match.start()].rstrip("\n") + ("\n" if text[: match.start()].strip() else "") + rest
    return head + body + rest


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
