"""Append to a live chain: plan the new items as its launch planned the first ones, and put them to its runner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from subagents_nb.catalog import load_settings, resolve
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.plans.defaults import ASKED
from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.plans.plan import LaunchPlan, LaunchRequest, agents_of, outputs_of
from subagents_nb.domain.runs.control import AppendedItems, Appendix, ControlAnswer
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.errors import LaunchRefused, RequestError, StoreError, Unreadable
from subagents_nb.launching.composing.flows import folders_of, models_of
from subagents_nb.launching.composing.run_references import session_lookups
from subagents_nb.launching.controlling import asking
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.launching.gathering.named_outputs import names_of
from subagents_nb.launching.gathering.prices import price_problems
from subagents_nb.launching.gathering.repository_lookup import with_repository, worktrees_of
from subagents_nb.launching.gathering.sandboxes import sandbox_problems
from subagents_nb.launching.gathering.sessions import sessions_for
from subagents_nb.launching.gathering.skill_folders import SkillLookups, skills_for
from subagents_nb.launching.gathering.trust_lookup import brought_here, environment_of
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.launching.starting.claiming import claiming
from subagents_nb.planning.chain_plan import PlannedFlow, plan_flow
from subagents_nb.planning.launch_environment import LookupsNeeded
from subagents_nb.planning.steps.plan_context import PlanContext
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.skill_files import write_skills
from subagents_nb.store.runs.writer import write_sessions


class AppendRefused(LaunchRefused):
    """Items that were refused before anything was asked of the run; `reasons` holds all of them."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(reasons)
        self.args = (str(self).replace("Not launched", "Not appended", 1),)


def append(
    home: StoreHome, run_id: str, flow: Chain, *, asked_by: str, wait_s: float = asking.RECEIPT_S
) -> ControlAnswer | None:
    """Plan items and have a live chain take them in behind its last one; return its answer, None if none came in time.

    A chain that waits for a place answers `queued`, and takes them in when it has begun.

    Raises:
        AppendRefused: with every reason found; nothing was asked of the run.
        RequestError: it is no chain, has ended, or refused.
    """
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    if snapshot.ended:
        raise RequestError(asking.too_late(snapshot, "append to"))
    plan = snapshot.plan
    if plan is None:
        raise StoreError(f"The plan of run {run_id} can't be read, so nothing can be planned behind it.")
    refuse_runs("what a chain does next is the person's to give")
    if not plan.is_flow:
        raise RequestError(f"Run {plan.name} has one step; only a chain can be appended to.")
    shelf = SkillLookups(Path(plan.cwd))
    appendix = plan_appendix(flow, plan, snapshot, waiting=_waiting(home, run_id), skills=shelf)
    until_done = not snapshot.waits_for_slot
    with claiming(home, plan.cwd, outputs_of(appendix.steps, appendix.items), own=run_id) as claim:
        claim(run_id)
    sessions = sessions_for(home, appendix)
    try:
        write_sessions(home.run(run_id), sessions)
        write_skills(home.run(run_id), skills_for(home, appendix.steps, appendix.items, shelf.files))
    except OSError as error:
        raise StoreError(f"What the items begin with could not be copied into the run: {error.strerror}.") from error
    answer = asking.request(
        home, run_id, "append", asked_by=asked_by, wait_s=wait_s, until_done=until_done, append=appendix
    )
    if answer is not None and answer.outcome == "too-late":
        raise RequestError(f"Nothing was appended to {plan.name}: {answer.text}.")
    return answer


def plan_appendix(
    flow: Chain, plan: LaunchPlan, snapshot: Snapshot, *, waiting: int = 0, skills: SkillLookups | None = None
) -> Appendix:
    """Return the plan of items behind those of a live chain, made as that of its launch; steps are numbered from 0.

    `waiting` is how many steps were appended before and are not among those of the chain yet.

    Raises:
        AppendRefused: with every reason found.
    """
    request = LaunchRequest.model_validate(
        {"task": plan.task, "cwd": plan.cwd, "flow": flow, **_options_of_launch(plan)}
    )
    environment = look_up_environment(
        plan.cwd,
        environ=os.environ,
        models=models_of(request),
        folders=folders_of(request),
    )
    if environment.cwd_problem is not None:
        raise AppendRefused([environment.cwd_problem])
    # A run that a chain would begin with is refused in any later place.
    skills = skills or SkillLookups(Path(environment.cwd))
    environment = environment.model_copy(update={**session_lookups(request), "skills": skills.lookups})
    cwd = Path(environment.cwd)
    try:
        settings = load_settings(cwd, environ=os.environ, reserved=PROVIDER_NAMES)
    except RequestError as error:
        raise AppendRefused(getattr(error, "reasons", (str(error),))) from error
    if plan.defaults is not None:
        settings = plan.defaults.settings_of(settings)
    catalog = usable_agents(cwd, settings)
    project = brought_here(cwd, catalog, settings)
    environment = environment.model_copy(update=environment_of(project, cwd))
    environment = with_repository(environment, worktrees_of(request, catalog, settings.default_agent))
    known = flow.model_copy(update={"task": plan.task or None})
    left = max(0, plan.max_children - _started(snapshot) - waiting)

    def attempt() -> tuple[PlannedFlow, PlanContext, Reasons]:
        reasons, context = Reasons(), PlanContext(request, catalog, settings, environment)
        planned = plan_flow(known, context, reasons, limit=left, names=names_of(plan, snapshot))
        if context.wanted:
            raise LookupsNeeded(context.wanted)
        return planned, context, reasons

    planned, ground, reasons = skills.planned(attempt)
    if flow.task is not None and flow.task != plan.task:
        reasons.append("the task of the chain was given at its launch; an appended item can't change it")
    here = (*price_problems(planned, snapshot.usage_budget), *sandbox_problems(planned, plan.cwd))
    reasons.extend([*ground.problems, *here])
    if reasons:
        raise AppendRefused(list(dict.fromkeys(reasons)))
    used = {name: resolve(name, catalog) for name in agents_of(planned.steps, planned.items)}
    agents = {name: agent.model_dump(mode="json") for name, agent in used.items()}
    return Appendix(items=planned.items, steps=planned.steps, agents=agents)


def _options_of_launch(plan: LaunchPlan) -> dict[str, object]:
    """Return what the launch named for all its steps; of one that did not keep it, the one model that it named."""
    if plan.defaults is not None:
        return {name: value for name, value in plan.defaults.asked.items() if name in ASKED}
    asked = {step.model.requested for step in plan.steps if step.model.origin == "call" and step.model.requested}
    return {"model": asked.pop()} if len(asked) == 1 else {}


def _waiting(home: StoreHome, run_id: str) -> int:
    try:
        record = read_document(home.run(run_id).appended, AppendedItems, run_id)
    except Unreadable:
        return 0  # nothing was appended; what can't be read, its runner counts when it comes to it
    return sum(len(more.steps) for more in record.waiting)


def _started(snapshot: Snapshot) -> int:
    """Return how many steps the chain has, those that are not begun included."""
    status = snapshot.status
    return max(len(status.steps), status.fan_out_used) if status is not None else 0
