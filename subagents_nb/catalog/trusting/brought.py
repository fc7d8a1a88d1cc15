"""What a project brings that can act: a table with a row for each kind.

A row returns what there is of its kind. Each thing says what it may do, in words, and holds a hash of what is used of
each of its files: of the very bytes that were parsed, so that what was hashed is what is used. A row reads by
`read_plain(..., within=root)` and keeps by stat what it read, for it is asked at each launch.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from subagents_nb.catalog.guidance.refinement_files import read_refinements
from subagents_nb.catalog.guidance.skill_trust import acting_skills
from subagents_nb.catalog.resolve import resolve
from subagents_nb.catalog.trusting.agents_withheld import how_it_acts
from subagents_nb.domain.agents.acting import Acting, Held, Trust
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.environment import runner_environ
from subagents_nb.domain.agents.mcp_servers import KIND, McpServers
from subagents_nb.domain.agents.models import script_meant
from subagents_nb.domain.agents.scripts import script_paths
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.errors import RequestError
from subagents_nb.store.files.named_files import hash_of, look_at, where_it_leads
from subagents_nb.store.files.opener import NotPlain, read_plain
from subagents_nb.store.trust_file import MOST_TEXT_BYTES

PROJECT_SETTINGS = ".subagents/settings.toml"  # as `Settings.origins` writes the project's file


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContext:
    """Where a row looks."""

    root: Path  # of the project
    cwd: Path
    catalog: AgentCatalog
    settings: Settings
    mcp: McpServers  # those that can be named there
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


def _text_of_file(root: Path, item: Acting, path: str) -> str | None:
    if item.text and path == item.where:
        return item.text
    data = read_plain(root / path, MOST_TEXT_BYTES, within=root)
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")  # as agents are hashed


@dataclass(frozen=True, slots=True)
class Row:
    """One kind: what there is of it, and the text of which a hash in `files` is, to be shown as a difference."""

    items: Callable[[ProjectContext], Iterable[Acting]]
    text: Callable[[Path, Acting, str], str | None] = _text_of_file  # may raise OSError and ValueError
    by_name: bool = False  # what a launch uses of it is judged where it is found by its name, not here


def _agents(project: ProjectContext) -> Iterable[Acting]:
    """Agents with a shell or kernel or commands of their own, and those that take the name of one the person has."""
    return project.catalog.acting  # discovery saw them all, also those that it keeps out


def _settings(project: ProjectContext) -> Iterable[Acting]:
    """What its settings let happen where nobody names it: a script as the model, an agent that acts, higher limits."""
    settings = project.settings
    chosen = {key for key, origin in settings.origins.items() if origin == PROJECT_SETTINGS}
    model = settings.default_model or ""
    if "default_model" in chosen and (name := script_meant(model)) is not None:
        scripts = {path: hash_of(project.cwd / path, project.cwd) for path in script_paths(name)}
        yield _setting("default_model", (model, "a script that makes tool calls"), scripts)
    if settings.raised:
        yield _setting("limits", settings.raised)
    agent = None
    if "default_agent" in chosen:
        with contextlib.suppress(RequestError):  # the launch says it
            agent = resolve(settings.default_agent, project.catalog)
    if agent is not None and (acts := how_it_acts(agent, project.catalog.agents)):
        yield _setting("default_agent", (f"{agent.name}, which {acts}",))


def _setting(name: str, does: tuple[str, ...], files: Mapping[str, str] = MappingProxyType({})) -> Acting:
    """Return what a project sets as something that acts: of its file, what counts are these words."""
    text = "".join(f"{word}\n" for word in does)
    own = {PROJECT_SETTINGS: sha256_text(text)}
    return Acting(kind="settings", name=name, does=does, files={**own, **files}, text=text)


def _skills(project: ProjectContext) -> Iterable[Acting]:
    """Skills with programs in them, which a step that loads one may run."""
    return acting_skills(project.root, project.catalog)


def _servers(project: ProjectContext) -> Iterable[Acting]:
    """MCP servers that its files define, with the files of it that their command lines name."""
    of_agents = (one for agent in project.catalog.agents for one in agent.mcp_servers or ())
    known = (*project.mcp.servers.values(), *of_agents)
    servers = [one for one in known if one.source == "project" and not one.disabled]
    variables = runner_environ(project.environ) if servers else {}
    for server in servers:
        named = look_at(server, variables, here=project.cwd, roots=(project.root,))
        yield server.acting(named.files, named.unseen)


def _text_of_server(root: Path, item: Acting, path: str) -> str | None:
    try:
        return _text_of_file(root, item, path)
    except NotPlain:
        return where_it_leads(root / path)


def _refinements(project: ProjectContext) -> Iterable[Acting]:
    """What a project adds to the instructions of agents, which may be the person's own."""
    return (one.acting for one in read_refinements(project.root, cwd=project.cwd) if one.acting is not None)


# By the `kind` of what it returns.
ROWS: Mapping[str, Row] = {
    "agent": Row(_agents),
    "settings": Row(_settings),
    "skill": Row(_skills, by_name=True),
    KIND: Row(_servers, text=_text_of_server),
    "refinement": Row(_refinements, by_name=True),
}


def brought(project: ProjectContext, *, whole: bool = True) -> tuple[Acting, ...]:
    """Return all that a project brings and that can act; if not the `whole`, without what is found by its name."""
    return tuple(item for row in ROWS.values() if whole or not row.by_name for item in row.items(project))


def held_of(items: Iterable[Acting], trust: Trust) -> tuple[Held, ...]:
    """Return what of it may not act yet."""
    return tuple(withheld for item in items if (withheld := trust.held(item)) is not None)


def texts_of(root: Path, items: Iterable[Acting]) -> dict[str, str]:
    """Return the texts that these are made of, by their hashes, as far as they are texts and still the same."""
    texts = (text_of(root, item, path) for item in items for path in item.files)
    return {sha256_text(text): text for text in texts if text is not None}


def text_of(root: Path, item: Acting, path: str) -> str | None:
    """Return the text of which an item holds the hash, to be shown and kept; None for what is none, or is another."""
    try:
        text = ROWS[item.kind].text(root, item, path)
    except (OSError, ValueError):
        return None
    return text if text is not None and sha256_text(text) == item.files[path] else None
