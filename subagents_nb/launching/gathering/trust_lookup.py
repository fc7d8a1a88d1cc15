"""What the project around a launch brings that can act, and whether the person allowed it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from subagents_nb.catalog import load_settings, project_root
from subagents_nb.catalog.guidance.refinement_files import read_refinements
from subagents_nb.catalog.scopes.mcp_files import mcp_servers
from subagents_nb.catalog.trust import home_folder
from subagents_nb.catalog.trusting.answers import trust_of
from subagents_nb.catalog.trusting.brought import ProjectContext, brought, held_of, texts_of
from subagents_nb.domain.agents.acting import Acting, Answer, Held, Trust
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.mcp_servers import KIND, McpServers
from subagents_nb.domain.agents.refinements import Refinement
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, everything
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching.gathering.last_work import work_in
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.store.trust_file import change_answer

_SETTINGS = "~/.subagents/settings.toml"  # as `AgentDefinition.overridden` names it


@dataclass(frozen=True, slots=True)
class Brought:
    """All of a project that can act, what of it may not, and the answer that says so."""

    root: Path
    items: tuple[Acting, ...]
    held: tuple[Held, ...]
    trust: Trust
    mcp: McpServers  # those that were judged, which are those that a launch may use


def brought_here(
    cwd: Path, catalog: AgentCatalog, settings: Settings, *, whole: bool = False, root: Path | None = None
) -> Brought:
    """Return what the project around a working directory brings.

    Where the folder is trusted or the `whole` is asked for, that is all of it; else what launches find by its name is
    left to them. `root` is the root of that project, where it is known already.
    """
    root = root or project_root(cwd)
    servers = mcp_servers(cwd, settings.mcp, root=root)
    project = ProjectContext(root=root, cwd=cwd, catalog=catalog, settings=settings, mcp=servers)
    trust = trust_of(root, work_in=work_in)
    items = () if root == home_folder() else brought(project, whole=whole or trust.by_folder)  # there it is all theirs
    known = {item.key for item in catalog.acting}  # these were judged already
    held = held_of((item for item in items if item.key not in known), trust)
    return Brought(root, items, catalog.held + held, trust, servers)


def environment_of(found: Brought, cwd: Path) -> dict[str, object]:
    """Return what planning needs to know of it, and of what was added to the instructions of agents, by field."""
    return {
        "brought": found.items,
        "held": found.held,
        "refinements": refinements_here(found.root, cwd, found.trust),
        "mcp": found.mcp,
        "project_root": str(found.root),
        "way_to_root": os.path.relpath(found.root, os.path.realpath(cwd)),
    }


def refinements_here(root: Path, cwd: Path, trust: Trust) -> tuple[Refinement, ...]:
    """Return what was added to the instructions of agents, with what of it the person has not allowed."""
    read = tuple(read_refinements(root, cwd=cwd))
    held = {one.where: trust.held(one.acting) for one in read if one.acting is not None}
    return tuple(one.model_copy(update={"held": held.get(one.where)}) for one in read)


def withdrawn_of(draft: Draft, agents: Iterable[AgentDefinition]) -> tuple[str, ...]:
    """Return what acts in a plan of an earlier run and was allowed then, and to which no yes of the person's stands.

    A changed content does not matter: the plan holds that of then.
    """
    root = project_root(Path(draft.cwd))
    trust = trust_of(root)
    if trust.by_folder or root == home_folder():
        return ()
    # Tools that the person's own settings gave to an agent of the project were never asked for.
    acting = {(one.name, one.where): one.reaches and ("tools", _SETTINGS) not in one.overridden for one in agents}
    found: dict[str, str] = {}
    for step in everything(draft.steps, draft.items):
        shells = any(one in ("bash", "python") for one in step.tools)
        if step.agent_source == "project" and acting.get((step.agent, step.agent_where), shells):
            found[f"agent {step.agent} {step.agent_where}"] = f"agent {step.agent}"
        for server in step.mcp:
            if server.source == "project":
                found[server.acting({}).key] = f"{KIND} {server.name}"
    kept = trust.answer.contents
    return tuple(called for key, called in found.items() if key not in kept)


def record_seen_at(cwd: str) -> None:
    """Do what `record_seen` does for a run that begins without being planned anew; where it can't, nothing."""
    with contextlib.suppress(RequestError, OSError):
        place = Path(cwd)
        settings = load_settings(place, environ=os.environ)
        record_seen(brought_here(place, usable_agents(place, settings), settings))


def record_seen(project: Brought) -> None:
    """Note what a folder that is trusted holds before a run begins there, so that what the run writes can be told.

    Where that can't be written, the launch goes on: a later change then counts as one since the time before.
    """
    if project.trust.seeing(project.items, 0.0) is None:
        return
    now = time.time()

    def seen(answer: Answer) -> Answer:
        return replace(project.trust, answer=answer).seeing(project.items, now) or answer

    with contextlib.suppress(StoreError):
        change_answer(home_folder(), str(project.root), seen, partial(texts_of, project.root, project.items))
