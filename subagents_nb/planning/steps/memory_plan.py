"""The memory of a step: where its agent's file wants it, to be read by all and written by those who may write."""

from __future__ import annotations

from subagents_nb.domain.agents.agent import WRITE_TOOLS, AgentDefinition
from subagents_nb.domain.agents.memory import MemoryPlan, path_problem
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.launch_environment import FolderLookup
from subagents_nb.planning.steps.plan_context import PlanContext


def plan_memory(
    agent: AgentDefinition, model: ModelChoice | None, context: PlanContext, reasons: Reasons
) -> MemoryPlan | None:
    """Return where the memory of an agent lies; None if it has none."""
    asked = agent.memory
    if asked is None:
        return None
    if model is not None and model.kind == "local":
        context.note("The embedded model can't call tools, so it has no memory.")
        return None
    path = asked.path or agent.name
    where = context.environment.memory.get(asked.scope) or FolderLookup()
    if (problem := path_problem(path) or where.problem) is not None:
        reasons.append(problem)
        return None
    writes = not set(WRITE_TOOLS).isdisjoint(agent.effective_tools)
    return MemoryPlan(scope=asked.scope, path=path, folder=where.path, writes=writes)
