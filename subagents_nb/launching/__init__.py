"""The one way to start and hold a run.

In: what was asked, by a call, a cell or a command.
Out: a `Run`, which any process can attach to again.
Never: carries out work, prints, or knows IPython.
"""

from __future__ import annotations

from subagents_nb.launching.composing.flows import chain, expand, parallel, step
from subagents_nb.launching.front import Preflight, agents, attach, launch, preflight, runs, settings
from subagents_nb.launching.handle import Run
from subagents_nb.launching.listing import Runs
from subagents_nb.launching.stored.project_trust import ProjectTrust, trust
from subagents_nb.launching.wait_all import wait_for

__all__ = [
    "Preflight",
    "ProjectTrust",
    "Run",
    "Runs",
    "agents",
    "attach",
    "chain",
    "expand",
    "launch",
    "parallel",
    "preflight",
    "runs",
    "settings",
    "step",
    "trust",
    "wait_for",
]
