"""Plan a run that goes on from another run's session: what it inherits, what is left of its limits, why it can't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, RunPlan, StepPlan, everything, label_of
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.plans.resumed import Resumes
from subagents_nb.domain.runs.reuse import lasting_notes
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.spent import Spent
from subagents_nb.domain.values.ids import is_run_name
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.errors import LaunchRefused
from subagents_nb.planning.launch_environment import LaunchEnvironment
from subagents_nb.planning.resuming.limits_left import LimitsLeft
from subagents_nb.planning.steps.step_plan import check_task, model_problem

# What a run of one step has none of.
_OF_A_CHAIN = ("mode", "items", "task", "max_parallel", "defaults")


def draft_revival(
    revival: Revival,
    plan: LaunchPlan,
    step: StepPlan,
    snapshot: Snapshot,
    *,
    environment: LaunchEnvironment,
    has_session: bool,
    spent: Spent,
) -> Draft:
    """Return the plan of a new run that goes on from a step of an ended one, with its agent, model, tools and schema.

    `spent` is what all of its tree has used, which is not given back.

    Raises:
        LaunchRefused: with every reason found.
    """
    reasons = refusals(revival, plan, snapshot, environment)
    if not has_session and not reasons:
        reasons.append(f"{plan.name} left no session to go on from; launch anew")
    if (problem := model_problem(step.model, environment)) is not None:
        reasons.append(problem)
    limits = LimitsLeft(revival, plan, snapshot, reasons, spent=spent)
    of_run, of_step = limits.of_run(alone=step), limits.of_only_step(step)
    if reasons:
        raise LaunchRefused(reasons)
    asked = {"task": revival.text, "label": label_of(revival.text), **of_step}
    # What came to its answer, or was a step of a chain, is read by a person now: that is kept in no file, has no name.
    output = None if plan.is_flow or snapshot.state is RunState.COMPLETE else step.output
    going_on = step.model_copy(update={**asked, "index": 0, "output_name": None, "output": output, "session": None})
    return gone_on(
        revival,
        plan,
        **{name: RunPlan.model_fields[name].default for name in _OF_A_CHAIN},
        steps=(going_on,),
        **of_run,
        notes=lasting_notes(plan.notes),
        resumes=Resumes(
            run_id=plan.run_id, digest=plan.digest, step=step.index, tree=tree_of(plan), admitted=spent.runs
        ),
    )


def tree_of(plan: LaunchPlan) -> str:
    """Return the root of the tree that a run belongs to: it itself, if nobody delegated it."""
    return plan.origin.root or plan.run_id


def gone_on(revival: Revival, plan: LaunchPlan, **changed: Any) -> Draft:
    """Return the plan of a run that goes on: that of the run before, but for what is changed.

    It belongs to the same experiment, in whose sweep it does not take the other's place.
    """
    experiment = plan.experiment.model_copy(update={"cell": None})
    own = {"name": revival.name, "origin": revival.origin, "experiment": experiment}
    return Draft(**{**plan.body(), **own, **changed})


def refusals(revival: Revival, plan: LaunchPlan, snapshot: Snapshot, environment: LaunchEnvironment) -> Reasons:
    """Return why a run can't be resumed at all, and what is wrong with what was asked for."""
    reasons = Reasons()
    if snapshot.state is not None and snapshot.state.live:
        reasons.append(f"{plan.name} is still {snapshot.state}; steer it instead: run.steer(text)")
    if snapshot.state is RunState.STOPPED:
        reasons.append(f"{plan.name} was stopped, and a stopped run is not resumed; launch anew")
    check_task(revival.text, reasons)
    if revival.name is not None and not is_run_name(revival.name):
        reasons.append(f"{revival.name!r} can't name a run")
    if environment.cwd_problem:
        reasons.append(environment.cwd_problem)
    return reasons


def same_agents(recorded: Sequence[AgentDefinition], plan: LaunchPlan) -> bool:
    """Say whether a recovery record and a plan speak of the same agents."""
    known = {(agent.name, agent.digest()) for agent in recorded}
    steps = everything(plan.steps, plan.items) if plan.is_flow else plan.steps  # of one step no reviewer is recorded
    return all((step.agent, step.agent_digest) in known for step in steps)
