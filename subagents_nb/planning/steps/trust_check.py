"""What a project brings and the person has not allowed does not act: what of it a step would let act."""

from __future__ import annotations

from collections.abc import Iterator

from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.mcp_servers import servers_named
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.scripts import script_paths
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.flow import Step
from subagents_nb.planning.launch_environment import LaunchEnvironment


def acting_in(
    asked: Step,
    agent: AgentDefinition,
    tools: tuple[str, ...],
    model: ModelChoice,
    acceptance: Acceptance | None,
    environment: LaunchEnvironment,
) -> Iterator[Acting]:
    """Yield what of the project would act in this step, which has these tools, but for its skills.

    Who reviews it, and whom it delegates to, is planned alike.
    """
    for item in environment.brought:
        if item.kind == "agent" and agent.source == "project" and (item.name, item.where) == (agent.name, agent.where):
            has_commands = asked.gate is not None or asked.acceptance not in (None, "auto")
            verifies = acceptance is not None and bool(acceptance.verify) and not has_commands
            left_out = {name for name in ("bash", "python") if name not in tools} | (set() if verifies else {"verify"})
            servers = servers_named(tools)
            left_out |= {word for word in item.does if word.startswith("mcp:") and word[4:] not in servers}
            if not left_out.issuperset(item.does):
                yield item
        by_settings = {
            "default_model": model.origin == "settings",
            "default_agent": not asked.agent,
            f"agents.{agent.name}": True,
            "limits": True,
        }
        if item.kind == "settings" and by_settings.get(item.name, False):
            yield item


def allowed_script(model: ModelChoice, environment: LaunchEnvironment) -> dict[str, str]:
    """Return the hashes of the script that the project makes the model, by its possible paths; none if it is no such.

    A run is to play the script that was allowed: it is read when a step begins, and by those that it delegates to.
    """
    if model.kind != "scripted":
        return {}
    items = (item for item in environment.brought if item.kind == "settings" and item.name == "default_model")
    return {path: item.files[path] for item in items for path in script_paths(model.name) if path in item.files}


def withheld_notes(agent: AgentDefinition, catalog: AgentCatalog) -> Iterator[str]:
    """Yield what the person should know of files that would have stood in for this agent."""
    for problem in catalog.problems:
        if problem.withheld == agent.name or problem.withheld in agent.aliases:
            yield f"{problem.where} of this project is {problem.error}."
