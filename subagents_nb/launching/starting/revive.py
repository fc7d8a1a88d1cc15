"""Go on from an ended run: a new run from its stored session, under an exclusive lease."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from subagents_nb.catalog import load_settings
from subagents_nb.domain.agents.acting import UNTRUSTED, taken_back
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, Origin, StepPlan, choices_of, everything
from subagents_nb.domain.plans.request import Revival
from subagents_nb.domain.runs.control import AppendedItems
from subagents_nb.domain.runs.records import RecoveryRecord, StepRecord, StepResult, StepStatus
from subagents_nb.domain.runs.reuse import lasting_notes
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import StepEvent, StepState
from subagents_nb.domain.values.ids import names_itself
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.errors import LaunchRefused, RequestError, StoreError, Unreadable
from subagents_nb.launching.gathering.lineage import origin_here
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.launching.gathering.prices import price_problems
from subagents_nb.launching.gathering.sandboxes import sandbox_problems
from subagents_nb.launching.gathering.trust_lookup import record_seen_at, withdrawn_of
from subagents_nb.launching.inputs.input_values import inputs_of
from subagents_nb.launching.starting.start_run import start_run
from subagents_nb.planning.resuming.chain_revival import appended_to, draft_whole, numbers, step_of
from subagents_nb.planning.resuming.revival import draft_revival, same_agents, tree_of
from subagents_nb.planning.steps.policy_plan import under_today
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.tree.followers import spent_by


class _StrictRecovery(RecoveryRecord):
    """The recovery record, read so that an unknown or wrong field stops a resume instead of being passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def resume(
    home: StoreHome,
    run_id: str,
    text: str,
    *,
    step: int | None = None,
    origin: Origin | None = None,
    limit: int,
    **asked: Any,
) -> str:
    """Start a new run that goes on from an ended one; return its id.

    Of a chain that is the whole of it, or with `step` the session of that one step. `asked` is what a `Revival` holds.

    Raises:
        LaunchRefused: with every reason found; nothing was started.
        LaunchError: its process did not get to work, or another run holds the session.
    """
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    plan = _plan_of(snapshot)
    appended = _appended_to(home, plan)
    revival, faults = read(Revival, {"text": text, **asked, "origin": origin or origin_here()})
    if revival is None:
        raise LaunchRefused([fault.at() for fault in faults])
    if plan.is_flow and step is None:
        draft, agents = _whole(home, plan, appended, snapshot, revival)
    else:
        draft, agents = _one_step(home, plan, appended, snapshot, revival, step)
    draft = under_today(draft, _settings_now(plan), asked_budget=revival.usage_budget is not None)
    if problems := price_problems(draft, draft.usage_budget):
        raise LaunchRefused(problems)
    _refuse_what_holds_no_more(draft, agents)
    record_seen_at(draft.cwd)
    return start_run(draft, agents, home=home, limit=limit, inputs=inputs_of(home, plan), earlier=plan.run_id)


def _one_step(
    home: StoreHome,
    plan: LaunchPlan,
    appended: AppendedItems | None,
    snapshot: Snapshot,
    revival: Revival,
    step: int | None,
) -> tuple[Draft, dict[str, AgentDefinition]]:
    chosen = _chosen_step(plan, appended, snapshot, step)
    known = _recorded_agents(home, plan, appended)
    agent = next(one for one in known if (one.name, one.digest()) == (chosen.agent, chosen.agent_digest))
    environment = look_up_environment(plan.cwd, environ=os.environ, models=(chosen.model.requested,))
    has_session = _has_session(home, plan.run_id, chosen.index)
    spent = spent_by(home, tree_of(plan))
    draft = draft_revival(
        revival, plan, chosen, snapshot, environment=environment, has_session=has_session, spent=spent
    )
    return draft, {agent.name: agent}


def _whole(
    home: StoreHome, plan: LaunchPlan, appended: AppendedItems | None, snapshot: Snapshot, revival: Revival
) -> tuple[Draft, dict[str, AgentDefinition]]:
    agents = _recorded_agents(home, plan, appended)
    more = appended_to(plan, appended, snapshot.stages)
    models = choices_of(plan.steps, plan.items) + (choices_of(more.steps, more.items) if more is not None else ())
    environment = look_up_environment(plan.cwd, environ=os.environ, models=tuple(choice.requested for choice in models))
    outcomes = _outcomes(home, snapshot)
    names = ("session.json", "before.json")  # the second one: it was to go on, and its turn did not come
    sessions = {n for n in outcomes if any(_has_session(home, plan.run_id, n, name) for name in names)}
    spent = spent_by(home, tree_of(plan))
    draft = draft_whole(
        revival, plan, more, snapshot, outcomes, environment=environment, sessions=sessions, spent=spent
    )
    return draft, by_name(agents)


def _outcomes(home: StoreHome, snapshot: Snapshot) -> dict[int, StepResult | StepStatus]:
    """Return how each step ended, by its own record where there is one: of a run that was killed they know most.

    One that is done and left no record can't be taken over; it is done anew.
    """
    outcomes: dict[int, StepResult | StepStatus] = {}
    for one in snapshot.steps:
        outcomes[one.index] = one
        try:
            path = home.run(snapshot.run_id).step(one.index) / "result.json"
            outcomes[one.index] = read_document(path, StepRecord, snapshot.run_id).result
        except Unreadable:
            if one.state in (StepState.COMPLETE, StepState.STOPPED):
                outcomes[one.index] = one.to(StepEvent.REDO)
    return outcomes


def _appended_to(home: StoreHome, plan: LaunchPlan) -> AppendedItems | None:
    try:
        return read_document(home.run(plan.run_id).appended, AppendedItems, plan.run_id) if plan.is_flow else None
    except Unreadable as error:
        if error.kind == "missing":
            return None
        raise LaunchRefused([f"what was appended to {plan.name} can't be read: {error}"]) from error


def launch_again(home: StoreHome, run_id: str, *, limit: int, origin: Origin | None = None) -> str:
    """Start a new run of the very plan of an earlier one; return its id.

    Raises:
        LaunchRefused: its directory is gone.
        StoreError: its plan can't be read.
    """
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    plan = _plan_of(snapshot)
    environment = look_up_environment(plan.cwd, environ=os.environ)
    if environment.cwd_problem:
        raise LaunchRefused([environment.cwd_problem])
    body = {**plan.body(), "name": plan.name}
    body["origin"] = origin or origin_here()
    if names_itself(plan.name, plan.run_id):
        body["name"] = None  # it was generated, and ends in the other's id
    body["notes"] = lasting_notes(plan.notes)
    agents = by_name(_recorded_agents(home, plan))
    draft, inputs = under_today(Draft.model_validate(body), _settings_now(plan)), inputs_of(home, plan)
    if draft.usage_budget != plan.usage_budget and (problems := price_problems(draft, draft.usage_budget)):
        raise LaunchRefused(problems)
    _refuse_what_holds_no_more(draft, agents)
    record_seen_at(draft.cwd)
    return start_run(draft, agents, home=home, limit=limit, inputs=inputs, earlier=plan.run_id)


def _refuse_what_holds_no_more(draft: Draft, agents: Mapping[str, AgentDefinition]) -> None:
    """Refuse what the machine can't keep any more, and what the person took back since."""
    problems: list[str] = list(sandbox_problems(draft, draft.cwd))
    if withdrawn := withdrawn_of(draft, agents.values()):
        problems.append(Reason(taken_back(withdrawn), code=UNTRUSTED, advice="subagents-nb trust"))
    if problems:
        raise LaunchRefused(problems)


def _settings_now(plan: LaunchPlan) -> Settings:
    try:
        return load_settings(Path(plan.cwd), environ=os.environ, reserved=PROVIDER_NAMES)
    except RequestError as error:
        raise LaunchRefused(list(getattr(error, "reasons", (str(error),)))) from error


def _chosen_step(plan: LaunchPlan, appended: AppendedItems | None, snapshot: Snapshot, step: int | None) -> StepPlan:
    """Return the step that is resumed."""
    if not plan.is_flow:
        if step not in (None, 0):
            raise LaunchRefused([f"{plan.name} has only one step, so there is no steps[{step}]"])
        return plan.steps[0]
    chosen = None if step is None else step_of(plan, appended, snapshot.stages, step)
    if chosen is None:
        indices = numbers({one.index: one for one in snapshot.steps}) if snapshot.head is not None else "none"
        raise LaunchRefused([f"{plan.name} is a chain: there is no steps[{step}] to go on from: {indices}"])
    return chosen


def _plan_of(snapshot: Snapshot) -> LaunchPlan:
    if snapshot.plan is None:
        why = next((d.message for d in snapshot.damage if d.document == "plan.json"), "it is not there")
        raise StoreError(f"The plan of run {snapshot.run_id} can't be read: {why}.")
    return snapshot.plan


def _recorded_agents(home: StoreHome, plan: LaunchPlan, appended: AppendedItems | None = None) -> list[AgentDefinition]:
    path = home.run(plan.run_id).recovery
    if os.path.lexists(home.run(plan.run_id).imported):
        raise LaunchRefused([f"{plan.name} was taken in from an archive: it is looked at and reused; launch it anew"])
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
    return [*agents, *_appended_agents(plan, appended)]


def by_name(agents: Iterable[AgentDefinition]) -> dict[str, AgentDefinition]:
    """Return agents by their names; of one that was changed between launch and append both are kept."""
    agents_by_name: dict[str, AgentDefinition] = {}
    for agent in agents:
        if agents_by_name.setdefault(agent.name, agent).digest() != agent.digest():
            agents_by_name[f"{agent.name} {agent.digest()[:8]}"] = agent
    return agents_by_name


def _appended_agents(plan: LaunchPlan, appended: AppendedItems | None) -> list[AgentDefinition]:
    """Return the agents of what was appended, as they were then."""
    appended_agents: list[AgentDefinition] = []
    for part in (appended.taken, *appended.waiting) if appended is not None else ():
        if part is None:
            continue
        try:
            agents = [AgentDefinition.model_validate(agent) for agent in part.agents.values()]
        except ValidationError as error:
            raise LaunchRefused([f"what was appended to {plan.name} can't be used: {_fault(error)}"]) from error
        known = {(agent.name, agent.digest()) for agent in agents}
        for step in everything(part.steps, part.items):
            if (step.agent, step.agent_digest) not in known:
                raise LaunchRefused([f"what was appended to {plan.name} names another agent ({step.agent})"])
        appended_agents += agents
    return appended_agents


def _fault(error: Any) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"agent.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _has_session(home: StoreHome, run_id: str, step: int, name: str = "session.json") -> bool:
    try:
        info = (home.run(run_id).step(step) / name).lstat()
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size > 0
