"""Plan a run that goes on from another run's session: what it inherits, what is left of its limits, why it can't."""

from __future__ import annotations

from subagents_nb.domain.agent import AgentDefinition
from subagents_nb.domain.base import Value
from subagents_nb.domain.ids import is_run_name
from subagents_nb.domain.plan import Draft, LaunchPlan, Origin, Resumes, label_of
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import duration, parse_duration
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.draft import check_task, model_problem
from subagents_nb.planning.facts import Facts


class Revival(Value):
    """What a person asks for when a run shall go on."""

    text: str
    name: str | None = None
    timeout: float | str | None = None
    max_requests: int | None = None
    origin: Origin = Origin()


def draft_revival(revival: Revival, plan: LaunchPlan, snapshot: Snapshot, *, facts: Facts, has_session: bool) -> Draft:
    """Return the plan of a new run that goes on from an ended one, with the same agent, model, tools and schema.

    Limits are inherited as what is left of them, in working time and requests, unless new ones are given.

    Raises:
        LaunchRefused: with every reason found.
    """
    reasons: list[str] = []
    step = plan.steps[-1]
    if snapshot.state is not None and snapshot.state.live:
        reasons.append(f"{plan.name} is still {snapshot.state}; steer it instead: run.steer(text)")
    if snapshot.state is RunState.STOPPED:
        reasons.append(f"{plan.name} was stopped, and a stopped run is not gone on from; launch anew")
    if not has_session and not reasons:
        reasons.append(f"{plan.name} left no session to go on from; launch anew")
    check_task(revival.text, reasons)
    if revival.name is not None and not is_run_name(revival.name):
        reasons.append(f"{revival.name!r} can't name a run")
    if facts.cwd_problem:
        reasons.append(facts.cwd_problem)
    if (problem := model_problem(step.model, facts)) is not None:
        reasons.append(problem)
    timeout = _time_left(revival, plan, snapshot, reasons)
    requests = revival.max_requests or step.max_requests - snapshot.usage.requests
    if requests <= 0:
        reasons.append(f"all {step.max_requests} requests of {plan.name} are used; give it more with max_requests")
    if reasons:
        raise LaunchRefused(reasons)
    going_on = step.model_copy(update={"task": revival.text, "label": label_of(revival.text), "max_requests": requests})
    return Draft(
        name=revival.name,
        cwd=plan.cwd,
        steps=(going_on,),
        timeout_s=timeout,
        tool_env=plan.tool_env,
        notes=plan.notes,
        tags=plan.tags,
        origin=revival.origin,
        resumes=Resumes(run_id=plan.run_id, digest=plan.digest),
        notify_command=plan.notify_command,
        checkpoint_s=plan.checkpoint_s,
    )


def _time_left(revival: Revival, plan: LaunchPlan, snapshot: Snapshot, reasons: list[str]) -> float | None:
    if revival.timeout is not None:
        try:
            return parse_duration(revival.timeout)
        except ValueError as error:
            reasons.append(str(error))
            return None
    if plan.timeout_s is None:
        return None
    left = plan.timeout_s - snapshot.elapsed_s
    if left <= 0:
        reasons.append(f"the {duration(plan.timeout_s)} of {plan.name} are used up; give it more with --timeout")
        return None
    return left


def same_agent(recorded: AgentDefinition, plan: LaunchPlan) -> bool:
    """Say whether a recovery record and a plan speak of the same agent."""
    step = plan.steps[-1]
    return recorded.name == step.agent and recorded.digest() == step.agent_digest
