"""Which skills a step has: those that it, its agent or its chain names, as they were found."""

from __future__ import annotations

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.skills import LISTED_BYTES, SkillLookup, SkillRecord, SkillWanted, fitting
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line
from subagents_nb.planning.steps.plan_context import PlanContext

_LOOKED = "skills lie in .subagents/skills, .claude/skills or .agents/skills of the project or of your home folder"


def plan_skills(
    asked: Step, agent: AgentDefinition, model: ModelChoice | None, context: PlanContext, reasons: Reasons
) -> tuple[SkillRecord, ...]:
    """Return the skills of a step. One that is nowhere is a note, one that is broken a reason against the launch."""
    records: dict[str, SkillRecord] = {}
    names = _named(asked, agent, context)
    if names and model is not None and model.kind == "local":
        context.note("The embedded model can't call tools, so it has no skills.")
        return ()
    for name in names:
        meant = agent.source == "project" and asked.skills is None and name in agent.skills
        wanted = SkillWanted(name=name, by_project=meant)
        if agent.skill_paths:
            own = {"paths": agent.skill_paths, "agent_where": agent.where, "agent_source": agent.source}
            wanted = wanted.model_copy(update=own)
        fact = context.environment.skills.get(wanted)
        if fact is None:
            context.wanted[wanted] = None
        elif fact.problem is not None:
            reasons.append(fact.problem)
        elif fact.record is None:
            context.note(f"No skill {one_line(name, 64)!r} was found for agent {agent.name}: {_LOOKED}.")
        else:
            records[fact.record.name] = fact.record
            context.uses([fact.acting] if fact.acting is not None else [])
            _note(fact, fact.record, agent, context)
    kept, dropped = fitting(records.values())
    if dropped:
        lead = "1 skill is" if len(dropped) == 1 else f"{len(dropped)} skills are"
        told = ", ".join(one.name for one in dropped)
        context.note(f"{lead} left out, as the model is told at most {LISTED_BYTES // 1024} KiB of them: {told}.")
    return kept


def _named(asked: Step, agent: AgentDefinition, context: PlanContext) -> tuple[str, ...]:
    """Return the names: a step's own come in place of its agent's, its chain's beside them; `false` is none."""
    own = asked.skills
    chains = context.request.skills if context.request.flow is not None else None
    if own is False or (own is None and chains is False):
        return ()
    return tuple(dict.fromkeys((*(agent.skills if own is None else own), *(chains or ()))))


def _note(fact: SkillLookup, record: SkillRecord, agent: AgentDefinition, context: PlanContext) -> None:
    tools = agent.effective_tools
    if fact.asks_for:
        asks = one_line(fact.asks_for, 80)
        context.note(f"Skill {record.name} names allowed-tools ({asks}), which grant nothing here.")
    if record.files > 1 and "read" not in tools:
        context.note(f"Agent {agent.name} has no read tool, so of skill {record.name} it sees the text alone.")
    if fact.scripts and not {"bash", "python"}.intersection(tools):
        context.note(f"Agent {agent.name} has neither bash nor python, so it can't run the scripts of {record.name}.")
