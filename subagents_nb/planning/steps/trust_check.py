"""What a project brings and the person has not allowed does not act: why a step can't begin."""

from __future__ import annotations

from collections.abc import Iterator

from subagents_nb.catalog.trust import how_to_allow
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.values.words import one_line
from subagents_nb.planning.facts import Facts

_OF_PROJECT = ".subagents/settings.toml"  # as `Settings.origins` writes the project's file


def untrusted(
    asked: Step,
    agent: AgentDefinition,
    model: ModelChoice,
    acceptance: Acceptance | None,
    reviewer: StepPlan | None,
    settings: Settings,
    facts: Facts,
) -> Iterator[str]:
    """Yield what the project would do in this step without anybody having named it; each with what allows it."""
    if facts.trusted:
        return
    allow = how_to_allow(facts.project or facts.cwd)
    theirs = agent.source == "project"
    if (problem := untrusted_default(model, settings, facts)) is not None:
        yield problem
    if theirs and agent.acts_by and not asked.agent and settings.origins.get("default_agent") == _OF_PROJECT:
        yield (
            f"{_OF_PROJECT} of this project makes its agent {agent.name} the default, which has "
            f"{', '.join(agent.acts_by)}; name an agent, or, {allow}"
        )
    if not theirs or acceptance is None or asked.gate is not None or asked.acceptance not in (None, "auto"):
        return
    if acceptance.verify:
        commands = ", ".join(f"`{one_line(one.command, 60)}`" for one in acceptance.verify)
        yield (
            f"agent {agent.name} of this project ({agent.where}) has commands run with your rights when it is done "
            f"(acceptance.verify: {commands}); give an acceptance of your own, or, {allow}"
        )
    if reviewer is not None and reviewer.agent_source == "project" and {"bash", "python"}.intersection(reviewer.tools):
        yield (
            f"agent {agent.name} of this project ({agent.where}) is reviewed by agent {reviewer.agent} of the project, "
            f"which has {', '.join(reviewer.tools)}; give an acceptance of your own, or, {allow}"
        )


def untrusted_default(model: ModelChoice, settings: Settings, facts: Facts) -> str | None:
    """Return why a default model that the project chose can't be used."""
    chosen = model.origin == "settings" and settings.origins.get("default_model") == _OF_PROJECT
    if facts.trusted or not chosen or model.kind != "scripted" or model.name in BUILTIN_SCRIPTS:
        return None
    return (
        f"{_OF_PROJECT} of this project makes {model.label} the default model, a script that makes tool calls; name "
        f"a model, or, {how_to_allow(facts.project or facts.cwd)}"
    )


def withheld_notes(agent: AgentDefinition, catalog: AgentCatalog) -> Iterator[str]:
    """Yield what the person should know of files that would have stood in for this agent."""
    for problem in catalog.problems:
        if problem.withheld == agent.name or problem.withheld in agent.aliases:
            yield f"{problem.where} of this project is {problem.error}."
