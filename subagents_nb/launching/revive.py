"""Go on from an ended run: a new run from its stored session, under an exclusive lease."""

from __future__ import annotations

import os
import stat
from typing import Any

from pydantic import ConfigDict, ValidationError

from subagents_nb.domain.agent import AgentDefinition
from subagents_nb.domain.ids import names_itself
from subagents_nb.domain.plan import Draft, LaunchPlan, Origin, StepPlan
from subagents_nb.domain.records import RecoveryRecord
from subagents_nb.domain.reuse import ANEW
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.errors import LaunchRefused, StoreError, Unreadable
from subagents_nb.launching.begin import begin
from subagents_nb.launching.facts import gather_facts
from subagents_nb.launching.inputs import given_again
from subagents_nb.launching.whence import origin_here
from subagents_nb.planning.revival import Revival, draft_revival, same_agents
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.reader import read_document


class _StrictRecovery(RecoveryRecord):
    """The recovery record, read so that an unknown or wrong field stops a resume instead of being passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def resume(
    home: StoreHome,
    run_id: str,
    text: str,
    *,
    step: int | None = None,
    name: str | None = None,
    timeout: float | str | None = None,
    max_requests: int | None = None,
    usage_budget: Any = None,
    origin: Origin | None = None,
    limit: int,
) -> str:
    """Start a new run that goes on from the session of an ended one, or of one step of an ended chain; return its id.

    Raises:
        LaunchRefused: with every reason found; nothing was started.
        LaunchError: its process did not get to work, or another run holds the session.
    """
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    plan = _plan_of(snapshot)
    chosen = _chosen_step(plan, step)
    agent = _recorded_agents(home, plan)[chosen.agent]
    facts = gather_facts(plan.cwd, environ=os.environ, models=(chosen.model.requested,))
    limits = {"timeout": timeout, "max_requests": max_requests, "usage_budget": usage_budget}
    revival = Revival.model_validate({"text": text, "name": name, **limits, "origin": origin or origin_here()})
    has_session = _has_session(home, run_id, chosen.index)
    draft = draft_revival(revival, plan, chosen, snapshot, facts=facts, has_session=has_session)
    return begin(draft, {agent.name: agent}, home=home, limit=limit, inputs=given_again(home, plan))


def launch_again(home: StoreHome, run_id: str, *, limit: int, origin: Origin | None = None) -> str:
    """Start a new run of the very plan of an earlier one; return its id.

    Raises:
        LaunchRefused: its directory is gone.
        StoreError: its plan can't be read.
    """
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    plan = _plan_of(snapshot)
    facts = gather_facts(plan.cwd, environ=os.environ)
    if facts.cwd_problem:
        raise LaunchRefused([facts.cwd_problem])
    kept = {name: getattr(plan, name) for name in Draft.model_fields if name in LaunchPlan.model_fields}
    kept["origin"] = origin or origin_here()
    if names_itself(plan.name, plan.run_id):
        kept["name"] = None  # it was generated, and ends in the other's id
    kept["notes"] = tuple(note for note in plan.notes if not note.startswith(ANEW))
    agents = _recorded_agents(home, plan)
    return begin(Draft.model_validate(kept), agents, home=home, limit=limit, inputs=given_again(home, plan))


def _chosen_step(plan: LaunchPlan, step: int | None) -> StepPlan:
    """Return the step whose session is gone on from. Those that a fan-out added stand in no plan."""
    if not plan.is_flow:
        if step not in (None, 0):
            raise LaunchRefused([f"{plan.name} has only one step, so there is no step {step}"])
        return plan.steps[0]
    numbers = ", ".join(f"{one.index} ({one.title or one.agent})" for one in plan.steps)
    found = next((one for one in plan.steps if one.index == step), None)
    if found is None:
        what = "say which step to go on from" if step is None else f"there is no step {step} to go on from"
        raise LaunchRefused([f"{plan.name} is a chain: {what}: {numbers}"])
    return found


def _plan_of(snapshot: Snapshot) -> LaunchPlan:
    if snapshot.plan is None:
        why = next((d.message for d in snapshot.damage if d.document == "plan.json"), "it is not there")
        raise StoreError(f"The plan of run {snapshot.run_id} can't be read: {why}.")
    return snapshot.plan


def _recorded_agents(home: StoreHome, plan: LaunchPlan) -> dict[str, AgentDefinition]:
    path = home.run(plan.run_id).recovery
    try:
        record = read_document(path, _StrictRecovery, plan.run_id)
        dumped = record.agents.values() if plan.is_flow else (record.agent,)
        agents = [AgentDefinition.model_validate(agent) for agent in dumped]
    except (Unreadable, ValidationError) as error:
        raise LaunchRefused([f"the recovery record of {plan.name} can't be used: {_fault(error)}"]) from error
    if record.digest != plan.digest:
        raise LaunchRefused([f"the recovery record of {plan.name} belongs to another contract (digest)"])
    if not same_agents(agents, plan):
        raise LaunchRefused([f"the recovery record of {plan.name} names another agent (agent)"])
    return {agent.name: agent for agent in agents}


def _fault(error: Any) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"agent.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _has_session(home: StoreHome, run_id: str, step: int) -> bool:
    try:
        info = (home.run(run_id).step(step) / "session.json").lstat()
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size > 0
