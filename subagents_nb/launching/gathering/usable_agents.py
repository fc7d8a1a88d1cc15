"""The agents that a launch may name: those that were found, as settings have them."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.catalog.discover import discover
from subagents_nb.catalog.registry import registered_agents
from subagents_nb.catalog.scopes.overriding import with_overrides
from subagents_nb.catalog.search_paths import project_root, shown_folder
from subagents_nb.catalog.trust import how_to_allow, is_trusted
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.settings import Settings


def usable_agents(cwd: Path, settings: Settings, *, home: Path | None = None) -> AgentCatalog:
    """Return every agent that can be used from `cwd`, and what could not be and why."""
    found = discover(cwd, home=home, registered=registered_agents())
    if not settings.agents:
        return found
    root = project_root(cwd, home=home)
    allow = how_to_allow(shown_folder(root, home=home))
    return with_overrides(found, settings.agents, trusted=is_trusted(root, home=home), allow=allow)
