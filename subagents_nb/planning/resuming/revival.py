"""Plan a run that goes on from another run's session: what it inherits, what is left of its limits, why it can't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.budgets import UsageBudget, retuned_budget
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, Origin, Resumes, RunPlan, StepPlan, everything, label_of
from subagents_nb.domain.runs.control import Retune, in_force
from subagents_nb.domain.runs.reuse import lasting_notes
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import Time, Whole
from subagents_nb.domain.values.ids import is_run_name
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.usage import Usage
from subagents_nb.domain.values.words import duration, parse_duration
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.budget_parser import plan_usage_budget
from subagents_nb.planning.facts import Facts
from subagents_nb.planning.steps.step_plan import check_task, model_problem

# What a run of one step has none of.
_OF_A_CHAIN = ("mode", "items", "task", "max_children", "max_parallel", "defaults")


class Revival(Value):
    """What a person asks for when a run shall go on."""

    text: str
    name: str | None = None
    timeout: Time | None = None
    max_requests: Whole | None = None
    usage_budget: Any = None  # False: none
    origin: Origin = Origin()


def draft_revival(
    revival: Revival, plan: LaunchPlan, step: StepPlan, snapshot: Snapshot, *, facts: Facts, has_session: bool
) -> Draft:
    """Return the plan of a new run that goes on from a step of an ended one, with its agent, model, tools and schema.

    Limits are inherited as they were in force at the end, retuned ones too: as what is left of them in working time,
    requests and usage, unless new ones are given.

    Raises:
        LaunchRefused: with every reason found.
    """
    reasons = refusals(revival, plan, snapshot, facts)
    if not has_session and not reasons:
        reasons.append(f"{plan.name} left no session to go on from; launch anew")
    if (problem := model_problem(step.model, facts)) is not None:
        reasons.append(problem)
    retuned = in_force(snapshot.retunes)
    timeout = time_left(revival, plan, snapshot, retuned, reasons, alone=step.timeout_s)
    requests = _requests_left(revival, plan, step, snapshot, retuned, reasons)
    budget = budget_left(revival, plan, snapshot, retuned, reasons, single=True)
    if reasons:
        raise LaunchRefused(reasons)
    asked = {"task": revival.text, "label": label_of(revival.text), "max_requests": requests}
    limits = {"timeout_s": None, "tool_timeout_s": retuned.tool_timeout_s or step.tool_timeout_s}
    # What came to its answer, or was a step of a chain, is read by a person now: that is kept in no file, has no name.
    output = None if plan.is_flow or snapshot.state is RunState.COMPLETE else step.output
    going_on = step.model_copy(
        update={**asked, **limits, "index": 0, "output_name": None, "output": output, "session": None}
    )
    return gone_on(
        revival,
        plan,
        **{name: RunPlan.model_fields[name].default for name in _OF_A_CHAIN},
        steps=(going_on,),
        usage_budget=budget,
        timeout_s=timeout,
        notes=lasting_notes(plan.notes),
        resumes=Resumes(run_id=plan.run_id, digest=plan.digest, step=step.index),
    )


def gone_on(revival: Revival, plan: LaunchPlan, **changed: Any) -> Draft:
    """Return the plan of a run that goes on: that of the run before, but for what is changed.

    It belongs to the same experiment, in whose sweep it does not take the other's place.
    """
    experiment = plan.experiment.model_copy(update={"cell": None})
    own = {"name": revival.name, "origin": revival.origin, "experiment": experiment}
    return Draft(**{**plan.body(), **own, **changed})


def refusals(revival: Revival, plan: LaunchPlan, snapshot: Snapshot, facts: Facts) -> Reasons:
    """Return why a run can't be gone on from at all, and what is wrong with what was asked for."""
    reasons = Reasons()
    if snapshot.state is not None and snapshot.state.live:
        reasons.append(f"{plan.name} is still {snapshot.state}; steer it instead: run.steer(text)")
    if snapshot.state is RunState.STOPPED:
        reasons.append(f"{plan.name} was stopped, and a stopped run is not gone on from; launch anew")
    check_task(revival.text, reasons)
    if revival.name is not None and not is_run_name(revival.name):
        reasons.append(f"{revival.name!r} can't name a run")
    if facts.cwd_problem:
        reasons.append(facts.cwd_problem)
    return reasons


def _used(snapshot: Snapshot, step: StepPlan) -> Usage:
    steps = snapshot.result.steps if snapshot.result is not None else snapshot.status.steps if snapshot.status else ()
    return next((one.usage for one in steps if one.index == step.index), Usage())


def time_left(
    revival: Revival,
    plan: LaunchPlan,
    snapshot: Snapshot,
    retuned: Retune,
    reasons: Reasons,
    *,
    alone: float | None = None,
) -> float | None:
    """Return what is left of a run's deadline; of one without, `alone`, that of the one step that goes on."""
    if revival.timeout is not None:
        try:
            return parse_duration(revival.timeout)
        except ValueError as error:
            reasons.append(str(error))
            return None
    deadline = retuned.timeout_s or plan.timeout_s
    if deadline is None:
        return alone
    left = deadline - snapshot.elapsed_s
    if left <= 0:
        reasons.append(f"the {duration(deadline)} of {plan.name} are used up; give it more with --timeout")
        return None
    return left


def _requests_left(
    revival: Revival, plan: LaunchPlan, step: StepPlan, snapshot: Snapshot, retuned: Retune, reasons: Reasons
) -> int:
    if revival.max_requests is not None and revival.max_requests < 1:
        reasons.append(f"max_requests is {revival.max_requests}; a step needs at least 1")
        return 1
    allowed = retuned.max_requests or step.max_requests
    requests = revival.max_requests or allowed - _used(snapshot, step).requests
    if requests <= 0:
        reasons.append(f"all {allowed} requests of {plan.name} are used; give it more with max_requests")
    return requests


def budget_left(
    revival: Revival, plan: LaunchPlan, snapshot: Snapshot, retuned: Retune, reasons: Reasons, *, single: bool
) -> UsageBudget | None:
    """Return what is left of a run's usage budget; `single` says that one step goes on by itself."""
    if revival.usage_budget is not None:
        return plan_usage_budget(revival.usage_budget, reasons, single=single)
    budget = retuned_budget(plan.usage_budget, tokens=retuned.tokens, cost_usd=retuned.cost_usd)
    if budget is None:
        return None
    used = snapshot.usage
    if budget.judge(used) == "hard-reached":
        reasons.append(
            f"the usage budget of {plan.name} is used up: {budget.words(used)}; give it more with --usage-budget"
        )
        return None
    left = budget.less(used)
    # Of a chain it kept later steps from starting; here there is none.
    return left.model_copy(update={"stop_running": True}) if plan.is_flow and single else left


def same_agents(recorded: Sequence[AgentDefinition], plan: LaunchPlan) -> bool:
    """Say whether a recovery record and a plan speak of the same agents."""
    known = {(agent.name, agent.digest()) for agent in recorded}
    steps = everything(plan.steps, plan.items) if plan.is_flow else plan.steps  # of one step no reviewer is recorded
    return all((step.agent, step.agent_digest) in known for step in steps)
