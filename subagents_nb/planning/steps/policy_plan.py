"""What a step may do: all who have a say, met; what was asked for and is not allowed is an error, never less of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from subagents_nb.domain.agents.agent import ALL_AGENTS, DELEGATE, REPLY, AgentCatalog, AgentDefinition
from subagents_nb.domain.agents.mcp_servers import servers_named
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.plans.flow import Step, StepOptions
from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchPlan, StepPlan, everything
from subagents_nb.domain.policy.policy import Ceiling, Policy, tools_and_rules
from subagents_nb.domain.policy.policy_rules import rule_faults
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.domain.policy.tool_names import MCP, covers, is_ours, is_server, shown_tool
from subagents_nb.domain.runs.control import Retune
from subagents_nb.domain.values.faults import meant, shown
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.steps.plan_context import PlanContext
from subagents_nb.planning.steps.sandboxed import (
    inherited,
    outside,
    own_limits,
    plan_sandbox,
    said_limits,
    sandbox_again,
)

_LAUNCH, _STEP = "this launch", "this step"
_NOBODY = "?"  # stands in for an agent that is not there


@dataclass(frozen=True, slots=True)
class StepPolicy:
    """What is in force for one step: its policy, the tools that are left to it, and what a person should know."""

    policy: Policy
    tools: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sandbox: SandboxPlan | None = None  # of whatever it starts

    @property
    def below(self) -> Policy:
        """Return what is allowed to those that work for it."""
        return inherited(self.policy, self.sandbox)

    def delegates(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of them that may be delegated to."""
        if self.policy.who_forbids_tool(DELEGATE) is not None:
            return ()
        return tuple(name for name in names if self.policy.who_forbids_agent(name) is None)

    def depth(self, planned: int) -> int:
        """Return over how many levels, at most so many."""
        return planned if self.policy.max_depth is None else min(planned, self.policy.max_depth)


def plan_policy(asked: StepOptions, agent: AgentDefinition, context: PlanContext, reasons: Reasons) -> StepPolicy:
    """Return what a step may do, after adding what is wrong with it to the reasons.

    Of the tools that its agent's file lists, those that are not allowed are taken away and said.
    """
    request, settings = context.request, context.settings
    called: list[Ceiling] = []
    for origin, said in ((_LAUNCH, request), (_STEP, asked)):
        if origin is _STEP and _same_words(asked, request):
            continue
        called += filter(None, [_ceiling_of(said, origin, reasons)])
    own = _of_agent(agent, asked, reasons)
    _check_options(asked, called, agent, context, reasons)
    if agent.name != _NOBODY:
        reasons.extend(_not_launched(agent.name, settings))
    policy = Policy.of(*settings.ceilings, *called, own).meet(context.above)
    tools: list[str] = []
    notes: list[str] = []
    for name in (*agent.effective_tools, *((DELEGATE,) if agent.agents else ())):
        taken = policy.who_forbids_tool(name)
        if taken is None and name == DELEGATE:
            notes += _undelegated(agent, policy, called)
        elif taken is None:
            tools.append(name)
        elif taken[0] not in called:  # what this launch takes away needs not be said to who launched it
            notes.append(f"Agent {agent.name} goes without {name}: {taken[0].origin} {taken[1]}.")
    free = [name for name in ("bash", "python") if name in tools and policy.lets_all(name)]
    if free and policy.hides_files:
        also = " and ".join(free)
        notes.append(f"Rules on files bind the file tools; agent {agent.name} also has {also}, which they don't bind.")
    sandbox = plan_sandbox(_under(asked, request), agent, own, policy, context, reasons)
    return StepPolicy(policy, tuple(tools), tuple(notes), sandbox)


def _under(asked: StepOptions, request: StepOptions) -> StepOptions:
    """Return what a step asks for of a sandbox, else its launch."""
    names = ("sandbox", "network")
    return asked.model_copy(update={name: getattr(request, name) for name in names if getattr(asked, name) is None})


def _not_launched(agent: str, settings: Settings) -> Iterator[str]:
    for one in settings.ceilings:
        if one.forbids_agent(agent):
            yield f"agent {agent} is not among those that {one.origin} allows ({', '.join(one.agents or ()) or 'none'})"


def _undelegated(agent: AgentDefinition, policy: Policy, called: Sequence[Ceiling]) -> Iterator[str]:
    for name in agent.agents or ():
        above = policy.who_forbids_agent(name) if name != ALL_AGENTS else None
        if above is not None and above not in called:
            allowed = ", ".join(above.agents or ()) or "none"
            yield f"Agent {agent.name} can't delegate to {name}: {above.origin} allows {allowed}."


def _same_words(one: StepOptions, other: StepOptions) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("tools", "deny", "agents", "sandbox", "network"))


def _ceiling_of(said: StepOptions, origin: str, reasons: Reasons) -> Ceiling | None:
    tools, deny, agents = (
        None if given is None else split_words(given) for given in (said.tools, said.deny, said.agents)
    )
    faults = list(rule_faults(origin, deny=deny or (), ask=(), allow=tools or ()))
    reasons.extend(faults)
    if faults:
        return None
    names, allow = tools_and_rules(tools) if tools is not None else (None, ())
    limits = said_limits(said, reasons)
    return Ceiling(origin=origin, tools=names, deny=deny or (), allow=allow, agents=agents, **limits)


def split_words(given: Sequence[str]) -> tuple[str, ...]:
    """Return single words: `read, grep` are two, and a comma within brackets belongs to its word."""
    found, depth, word = [], 0, ""
    for char in ",".join(given) + ",":
        depth += (char == "(") - (char == ")" and depth > 0)
        if char == "," and depth == 0:
            found.append(word.strip())
            word = ""
        else:
            word += char
    return tuple(dict.fromkeys(filter(None, [*found, word.strip(" ,")])))


def _of_agent(agent: AgentDefinition, asked: StepOptions, reasons: Reasons) -> Ceiling:
    where = agent.where or f"agent {agent.name}"
    rules = {kind: getattr(agent, kind) or () for kind in ("deny", "ask", "allow")}
    faults = list(rule_faults(where, **rules))
    reasons.extend(faults)
    return Ceiling(origin=where, **({} if faults else rules), **own_limits(agent, asked))


def _check_options(
    asked: StepOptions, called: Sequence[Ceiling], agent: AgentDefinition, context: PlanContext, reasons: Reasons
) -> None:
    """Add what was named by the call and can't be had."""
    has, settings = agent.effective_tools, context.settings
    for one in called:
        for name in one.tools or ():
            above = next(((top, how) for top in settings.ceilings if (how := top.forbids_tool(name))), None)
            if above is not None:
                reasons.append(f"{name} is asked for; {above[0].origin} {above[1]}")
            elif not _has(name, has) and asked.tools is not None and agent.name != _NOBODY:
                own = ", ".join(map(shown_tool, has)) or "no tools"
                where = agent.where or agent.source
                reasons.append(f"{shown_tool(name)} is asked for; agent {agent.name} ({where}) has {own}")
        for name in one.agents or ():
            above_all = [top for top in settings.ceilings if top.forbids_agent(name)]
            for top in above_all:
                reasons.append(
                    f"agent {name} is asked for; {top.origin} allows {', '.join(top.agents or ()) or 'none'}"
                )
            if not above_all and name != ALL_AGENTS and name not in (known := _known(context.catalog)):
                reasons.append(f"agents: there is no agent {shown(name)}{meant(name, known)}")  # it would allow less


def _known(catalog: AgentCatalog) -> tuple[str, ...]:
    """Return all names of agents, those too that can't be used now: they name somebody."""
    called = (name for one in catalog.agents for name in (one.name, *one.aliases))
    unread = (one.name for one in catalog.problems if one.name)
    held = (one.name for one in catalog.acting if one.kind == "agent")
    return tuple(dict.fromkeys([*called, *unread, *held]))


def _has(name: str, tools: Sequence[str]) -> bool:
    """Say whether a tool that is named is among these, or none that a file can list."""
    if name.startswith(MCP):
        return any(covers(one, name) or (is_server(name) and covers(name, one)) for one in tools)
    return not is_ours(name) or name in tools


def beyond(policy: Policy, model: ModelChoice, thinking: str | None, agent: str) -> Iterator[str]:
    """Yield why a model or a level is not allowed: neither is ever clamped."""
    names = (model.label, model.requested, model.label.replace(":", "/", 1))
    for one in policy.ceilings:
        if one.forbids_model(*names):
            yield f"model {model.label} is not among those that {one.origin} allows ({', '.join(one.models or ())})"
        if one.forbids_thinking(thinking):
            yield f"thinking {thinking} is above {one.max_thinking}, the most that {one.origin} allows to {agent}"


def unbound_commands(asked: Step, agent: AgentDefinition, acceptance: Acceptance | None, policy: Policy) -> str:
    """Return the note that an agent's file has commands run that its policy would not let it run; empty if it is so.

    Whoever gave them at the launch knows; those of a project wait for trust.
    """
    given = asked.gate is not None or asked.acceptance not in (None, "auto")
    if given or acceptance is None or not acceptance.verify:
        return ""
    if (taken := policy.who_forbids_tool("bash")) is not None:
        why = f"{taken[0].origin or 'its policy'} {taken[1]}, and they run all the same"
    elif not policy.lets_all("bash"):
        why = "rules on bash don't bind them"
    else:
        return ""
    return f"The verify commands in the file of agent {agent.name} are run by us, and no call of the agent's: {why}."


def allowed_children(asked: int | None, settings: Settings, reasons: Reasons) -> int:
    """Return how many steps a run may start: as asked for, if that is allowed; else as set, within what is allowed."""
    limits = [(one.max_children, one.origin) for one in settings.ceilings if one.max_children is not None]
    for most, origin in limits:
        if asked is not None and asked > most:
            reasons.append(f"max_children {asked} is above {most}, the most that {origin} allows")
    return asked if asked is not None else min([settings.max_children, *(most for most, _ in limits)])


def allowed_spend(
    budget: UsageBudget | None, asked: bool, settings: Settings, reasons: Reasons, *, single: bool
) -> UsageBudget | None:
    """Return what a run may use: as asked for, if that is allowed; else as set, within what is allowed."""
    found: dict[str, Amount | None] = {name: getattr(budget, name, None) for name in ("tokens", "cost_usd")}
    for one in settings.ceilings:
        for name, most in (("tokens", one.max_tokens), ("cost_usd", one.max_usd)):
            own = found[name]
            if most is None or (own is not None and own.hard <= most):
                continue
            if own is not None and asked:
                over = f"{_amount(name, own.hard)} is above {_amount(name, most)}"
                reasons.append(f"usage_budget {over}, the most that {one.origin} allows")
            found[name] = Amount(hard=most)
    if found["tokens"] is None and found["cost_usd"] is None:
        return budget
    return UsageBudget(
        tokens=found["tokens"],
        cost_usd=found["cost_usd"],
        stop_running=budget.stop_running if budget is not None else single,
    )


def above_policy(change: Retune, plan: LaunchPlan) -> Iterator[str]:
    """Yield what of new limits for a live run is more than the policy it was launched under allows."""
    policies = [step.policy for step in everything(plan.steps, plan.items) if step.policy is not None]
    ceilings = dict.fromkeys(one for policy in policies for one in policy.ceilings)
    for one in ceilings:
        for name, asked, most in (
            ("tokens", change.tokens, one.max_tokens),
            ("cost_usd", change.cost_usd, one.max_usd),
        ):
            if asked is not None and most is not None and asked > most:
                yield f"{_amount(name, asked)} is above {_amount(name, most)}, the most that {one.origin} allows"


def _amount(name: str, amount: float) -> str:
    return f"${amount:g}" if name == "cost_usd" else f"{amount:,.0f} tokens"


def under_today(draft: Draft, settings: Settings, *, asked_budget: bool = False) -> Draft:
    """Return the plan of a run that goes on, or is made again, under what is allowed today as well.

    `asked_budget`: what it may use was asked for just now, and is not what it was launched with.

    Raises:
        LaunchRefused: its model, its level, its budget or one of its agents is not allowed any more.
    """
    if not settings.ceilings:
        return draft
    reasons = Reasons()
    steps = tuple(_met_again(step, settings, reasons) for step in draft.steps)
    items = tuple(
        one.model_copy(update={"template": _met_again(one.template, settings, reasons)})
        if isinstance(one, FanOutItem)
        else one
        for one in draft.items
    )
    budget = allowed_spend(draft.usage_budget, asked_budget, settings, reasons, single=draft.mode == "single")
    children = min([draft.max_children, *(n for one in settings.ceilings if (n := one.max_children) is not None)])
    if reasons:
        raise LaunchRefused(list(dict.fromkeys(reasons)))
    return draft.model_copy(update={"steps": steps, "items": items, "usage_budget": budget, "max_children": children})


def _met_again(step: StepPlan, settings: Settings, reasons: Reasons, levels: int | None = None) -> StepPlan:
    """Return a step of an earlier plan under what is allowed today as well; `levels`: so many may stand below it."""
    policy = Policy.of(*settings.ceilings).meet(step.policy)
    if not policy:
        return step
    reasons.extend(beyond(policy, step.model, step.thinking, step.agent))
    reasons.extend(_not_launched(step.agent, settings))
    judged = {name: DELEGATE if name == REPLY else name for name in step.tools}
    tools = tuple(name for name in step.tools if policy.who_forbids_tool(judged[name]) is None)
    reviewer = _met_again(step.reviewer, settings, reasons) if step.reviewer is not None else None
    left = tuple(one for one in step.children if DELEGATE in tools and policy.who_forbids_agent(one.agent) is None)
    depth = min(one for one in (step.depth, policy.max_depth, levels) if one is not None)
    children = tuple(_met_again(one, settings, reasons, depth - 1) for one in left if depth)
    names = tuple(name for name in step.delegates if DELEGATE in tools and policy.who_forbids_agent(name) is None)
    sandbox = sandbox_again(step.model_copy(update={"tools": tools}), policy, settings)
    servers = tuple(one for one in step.mcp if one.name in servers_named(tools))
    reasons.extend(outside(sandbox, servers, step.worktree, policy))
    again = {
        "policy": policy,
        "tools": tools,
        "mcp": servers,
        "reviewer": reviewer,
        "children": children,
        "delegates": names,
        "depth": depth,
        "sandbox": sandbox,
    }
    return step.model_copy(update=again)
