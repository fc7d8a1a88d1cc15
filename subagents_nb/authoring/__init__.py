"""Agent files as the person's own work: written, copied, switched on and off, refined, and judged as a whole.

In: the name of an agent, and what is to become of it.
Out: files of the person or the project; what every agent file says, what of it is carried out and what not.
Never: launches anything but who proposes, or changes a file that it can't read back as it meant it.
"""

from __future__ import annotations

from subagents_nb.authoring.examined import FileReport, Finding, Validation, validate_agents
from subagents_nb.authoring.new_files import AgentChange, create_agent, eject_agent
from subagents_nb.authoring.refined import AgentRefinement, refinement
from subagents_nb.authoring.switched import disable_agent, enable_agent

__all__ = [
    "AgentChange",
    "AgentRefinement",
    "FileReport",
    "Finding",
    "Validation",
    "create_agent",
    "disable_agent",
    "eject_agent",
    "enable_agent",
    "refinement",
    "validate_agents",
]
