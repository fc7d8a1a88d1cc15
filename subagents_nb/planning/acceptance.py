"""Read what a step's acceptance asks for."""

from __future__ import annotations

from subagents_nb.domain.acceptance import Acceptance
from subagents_nb.domain.agent import AgentDefinition
from subagents_nb.domain.flow import Step


def plan_acceptance(asked: Step, agent: AgentDefinition, reasons: list[str]) -> Acceptance | None:
    """Return what the step must show, or None when nothing is asked."""
    del agent
    if asked.acceptance or asked.gate:
        reasons.append("acceptance is not carried out yet")
    return None
