"""From a request, agents and settings to a frozen plan.

In: a request, the agents and settings it names, what was looked up of the workspace.
Out: a whole plan, or every reason against it at once.
Never: does IO: `launching` looks up what it needs.
"""

from __future__ import annotations

from subagents_nb.planning.draft import draft
from subagents_nb.planning.launch_environment import LaunchEnvironment

__all__ = ["LaunchEnvironment", "draft"]
