"""What was added to the instructions of a step's agent, beside its file."""

from __future__ import annotations

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.steps.plan_context import PlanContext


def plan_refinements(agent: AgentDefinition, context: PlanContext, reasons: Reasons) -> tuple[str, ...]:
    """Return the texts, the person's before the project's; each is noted, one that can't be used is a reason."""
    texts = []
    for one in context.environment.refinements:
        if one.agent != agent.name:
            continue
        if one.problem is not None:
            reasons.append(f"the refinement {one.where} of agent {agent.name!r} can't be used: {one.problem}")
        elif one.text.strip():
            context.uses([one.acting] if one.acting is not None else [])
            context.note(f"Agent {agent.name} is refined by {one.where}.")
            texts.append(one.text)
    return tuple(texts)
