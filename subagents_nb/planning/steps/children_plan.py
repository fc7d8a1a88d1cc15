"""Whom a step may delegate to, and how far down that goes: each of them is resolved now, and frozen in its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from subagents_nb.domain.agents.agent import ALL_AGENTS, DELEGATE, REPLY, AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.plans.defaults import ASKED
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.plans.plan import DEFAULT_DEPTH, StepPlan
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.steps.plan_context import PlanContext


def delegates_of(agent: AgentDefinition, model: ModelChoice, context: PlanContext) -> tuple[str, ...]:
    """Return whom an agent may delegate to, by name; `*` is everybody who is there now."""
    if model.kind == "local" or agent.max_depth == 0:  # the embedded model can't call tools
        return ()
    named = agent.agents or ()
    if ALL_AGENTS in named:
        return tuple(sorted(one.name for one in context.catalog.agents))
    return tuple(dict.fromkeys(_own_name(name, context.catalog) for name in named))


def _own_name(name: str, catalog: AgentCatalog) -> str:
    """Return what an agent is called that another name may stand for: policies and plans know it by that."""
    if any(one.name == name for one in catalog.agents):
        return name
    meant = [one.name for one in catalog.agents if name in one.aliases]
    return meant[0] if len(meant) == 1 else name  # what it is instead is said where it is planned


def depth_of(agent: AgentDefinition, context: PlanContext) -> int:
    """Return over how many levels it may: what is left below its root, or less if its own file says so."""
    left = DEFAULT_DEPTH if context.depth is None else context.depth
    return left if agent.max_depth is None else min(left, agent.max_depth)


def plan_children(
    agent: AgentDefinition,
    names: tuple[str, ...],
    model: ModelChoice,
    context: PlanContext,
    reasons: Reasons,
    *,
    depth: int,
    plan: Callable[[Step, PlanContext, Reasons], StepPlan | None],
) -> tuple[StepPlan, ...]:
    """Return those it may delegate to, each resolved by its own file; one that names no model has that of its parent.

    Nobody is resolved where the levels end. Of those that `*` means, who can't be had is left out.
    """
    if not depth:
        return ()
    unsaid: dict[str, Any] = dict.fromkeys(ASKED)
    below = replace(context, request=context.request.model_copy(update=unsaid), depth=depth - 1)
    everybody, found = ALL_AGENTS in (agent.agents or ()), []
    for name in names:
        where = f"agents: {name}"
        problems, before = context.problems, context.noted()
        own = next((one for one in context.catalog.agents if one.name == name), None)
        asked = Step(agent=name, task="{task}", model=model.requested if own is not None and not own.model else None)
        child = plan(asked, below.at("", where), Reasons() if everybody else reasons.at("", where))
        if everybody and (child is None or context.problems != problems):
            context.back_to(before)
            context.note(f"Agent {agent.name} can't delegate to {name} here.")
        elif child is not None:
            found.append(child)
    return tuple(found)


def tools_of_parents(delegates: tuple[str, ...], children: tuple[StepPlan, ...]) -> tuple[str, ...]:
    """Return the tools of who may delegate: `reply` too, where one of these may ask it something."""
    asked = any(child.asks_parent_s is not None for child in children)
    return (*((DELEGATE,) if delegates else ()), *((REPLY,) if delegates and asked else ()))
