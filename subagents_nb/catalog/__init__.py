"""Agents and settings: where they lie, what they say, which one a name means.

In: the folders to look in.
Out: agents, settings and project notes, each with its source, and what is wrong with the rest.
Never: writes, or lets a project set what only its user may.
"""

from __future__ import annotations

from subagents_nb.catalog.discover import discover
from subagents_nb.catalog.guidance.project_context import project_context
from subagents_nb.catalog.parse import parse_agent
from subagents_nb.catalog.registry import register_agent, registered_agents, unregister_agent
from subagents_nb.catalog.resolve import AmbiguousAgent, BrokenAgent, UnknownAgent, resolve
from subagents_nb.catalog.search_paths import project_root
from subagents_nb.catalog.settings_files import SettingsProblem, load_settings

__all__ = [
    "AmbiguousAgent",
    "BrokenAgent",
    "SettingsProblem",
    "UnknownAgent",
    "discover",
    "load_settings",
    "parse_agent",
    "project_context",
    "project_root",
    "register_agent",
    "registered_agents",
    "resolve",
    "unregister_agent",
]
