"""The agents that a launch may name: those that were found, as settings have them."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.catalog.discover import discover
from subagents_nb.catalog.registry import registered_agents
from subagents_nb.catalog.scopes.overriding import with_overrides
from subagents_nb.catalog.search_paths import project_root
from subagents_nb.catalog.trusting.answers import trust_of
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.launching.gathering.last_work import work_in


def usable_agents(cwd: Path, settings: Settings, *, home: Path | None = None) -> AgentCatalog:
    """Return every agent that can be used from `cwd`, and what could not be and why."""
    catalog = discover(cwd, home=home, registered=registered_agents(), work_in=work_in)
    if not settings.agents:
        return catalog
    trust = trust_of(project_root(cwd, home=home), home=home, work_in=work_in)
    return with_overrides(catalog, settings.agents, trust, settings.limits)
