"""In which sandbox the processes of a step work: the strictest of all who have a say, never less than was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.domain.plans.flow import StepOptions
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.plans.worktree import WorktreePlan
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.sandbox_plan import SANDBOXES, WITHOUT_PROCESS, SandboxPlan
from subagents_nb.domain.values.faults import shown, snake
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.steps.plan_context import PlanContext

_PARENT = "its parent"
_PERSON = "~/.subagents/settings.toml"  # as `AgentDefinition.overridden` names it


def kind_of(given: str | bool | None) -> str | None:
    """Return which sandbox is meant; None if nobody says.

    Raises:
        ValueError: there is no such sandbox.
    """
    if given is None or given in SANDBOXES:
        return given
    if isinstance(given, bool):
        return SANDBOXES[0] if given else "none"
    raise ValueError(f"there is no sandbox {shown(given)}; there are {' and '.join(SANDBOXES)}")


def said_limits(said: StepOptions, reasons: Reasons) -> dict[str, object]:
    """Return what a launch or a step limits, as a ceiling has it."""
    try:
        limits: dict[str, object] = {"sandbox": "workspace"} if kind_of(said.sandbox) == "workspace" else {}
    except ValueError as error:
        reasons.append(str(error), path=("sandbox",))
        limits = {}
    return limits | {"network": False} if said.network is False else limits


def own_limits(agent: AgentDefinition, asked: StepOptions) -> dict[str, object]:
    """Return what an agent's file limits, unless the launch says that this is to be ignored."""
    left_out = set(map(snake, asked.ignore or ()))
    limits: dict[str, object] = {}
    if agent.sandbox == "workspace" and "sandbox" not in left_out:
        limits["sandbox"] = "workspace"
    if agent.network is False and "network" not in left_out:
        limits["network"] = False
    return limits


def plan_sandbox(
    asked: StepOptions, agent: AgentDefinition, own: Ceiling, policy: Policy, context: PlanContext, reasons: Reasons
) -> SandboxPlan | None:
    """Return the sandbox of all that a step may start, be it anything or nothing; None: there is none.

    `own` is what the agent's file says, which may take the network for a sandbox that nobody else wants.
    """
    wants, denies = policy.wants_sandbox, policy.denies_network
    try:
        unwanted = kind_of(asked.sandbox) == "none"
    except ValueError:
        return None  # told already
    if unwanted and wants is not None:
        reasons.append(f"sandbox none is asked for; {_who(wants)} says workspace", path=("sandbox",))
    if asked.network and denies is not None:
        reasons.append(f"the network is asked for; {_who(denies)} says network false", path=("network",))
    if wants is None:
        return None
    given = bool(asked.network or context.settings.network or context.network)
    by_others = Policy.of(*(one for one in policy.ceilings if one != own)).wants_sandbox
    if agent.network and not given and denies is None:
        said = dict(agent.overridden)
        # Who put the agent into the sandbox may let the network in, and so may the person: nobody else.
        given = by_others is None and said.get("network") in (said.get("sandbox"), _PERSON)
        if by_others is None and not given:
            context.note(
                f"Agent {agent.name} goes without the network: its sandbox is that of {said.get('sandbox')}; "
                "network=True at the launch lets it out."
            )
        if by_others is not None:
            context.note(
                f"Agent {agent.name} goes without the network: the sandbox is that of {_who(by_others)}; network=True "
                "at the launch lets it out."
            )
    elif agent.network and denies is not None and denies is not own:
        context.note(f"Agent {agent.name} goes without the network: {_who(denies)} says network false.")
    return SandboxPlan(network=given and denies is None)


def inherited(policy: Policy, sandbox: SandboxPlan | None) -> Policy:
    """Return what is allowed to those that a step delegates to: they have its sandbox."""
    if sandbox is None:
        return policy
    return policy.meet(
        Policy.of(Ceiling(origin=_PARENT, sandbox="workspace", network=None if sandbox.network else False))
    )


def needed(
    tools: tuple[str, ...],
    sandbox: SandboxPlan | None,
    acceptance: Acceptance | None,
    policy: Policy,
    reasons: Reasons,
) -> SandboxPlan | None:
    """Return the sandbox if the step starts a process at all, after adding that nobody keeps a word to the reasons."""
    starts = not WITHOUT_PROCESS.issuperset(tools) or (acceptance is not None and bool(acceptance.verify))
    if starts and sandbox is None and (denies := policy.denies_network) is not None:
        reasons.append(
            f"{_who(denies)} says network false, which only the sandbox keeps from processes; say sandbox workspace as "
            "well",
            path=("network",),
        )
    return sandbox if starts else None


def outside(
    sandbox: SandboxPlan | None, servers: Sequence[McpServer], worktree: WorktreePlan | None, policy: Policy
) -> Iterator[str]:
    """Yield what of a step would use the network for it, outside of a sandbox that has none."""
    if sandbox is None or sandbox.network:
        return
    denies = policy.denies_network
    by = "" if denies is None else f" ({_who(denies)} says network false)"
    for one in servers:
        if one.url is None or (one.outside_sandbox and one.source == "user" and denies is None):
            continue
        else_ = (
            f"network=True at the launch, or outside_sandbox = true below [mcp.{one.name}] in {_PERSON}, allows it"
            if denies is None
            else f"go without it, by deny='mcp:{one.name}'"
        )
        yield (
            f"MCP server {one.name!r} ({one.where}) is asked over HTTP, outside of the sandbox, which has no "
            f"network{by}; {else_}"
        )
    if worktree is not None and (worktree.setup_hook is not None or worktree.provider == "worktrunk"):
        what = "its setup hook runs" if worktree.setup_hook is not None else "hooks of worktrunk run"
        yield f"worktree: {what} outside of the sandbox, which has no network{by}; take one of the two out"


def sandbox_again(step: StepPlan, policy: Policy, settings: Settings) -> SandboxPlan | None:
    """Return the sandbox of a step of an earlier plan under what is said today as well."""
    if policy.wants_sandbox is None:
        return step.sandbox
    network = step.sandbox.network if step.sandbox is not None else bool(settings.network)
    sandbox = SandboxPlan(network=network and policy.denies_network is None)
    return needed(step.tools, sandbox, step.acceptance, policy, Reasons())


def _who(one: Ceiling) -> str:
    return one.origin or "its policy"
