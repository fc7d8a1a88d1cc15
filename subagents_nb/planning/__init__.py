"""From a request, agents and settings to a frozen plan.

In: a request, the agents and settings it names, facts about the workspace.
Out: a whole plan, or every reason against it at once.
Never: does IO: the facts were gathered by `launching`.
"""

from __future__ import annotations

from subagents_nb.planning.draft import draft
from subagents_nb.planning.facts import Facts

__all__ = ["Facts", "draft"]
