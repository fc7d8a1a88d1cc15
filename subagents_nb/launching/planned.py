"""Plan a launch from where it is asked for, and as it may have been planned where its run was made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from subagents_nb.catalog import discover, load_settings, registered_agents
from subagents_nb.domain.agent import AgentCatalog
from subagents_nb.domain.flow import Attached
from subagents_nb.domain.models import PROVIDER_NAMES, ModelChoice
from subagents_nb.domain.plan import Draft, LaunchRequest
from subagents_nb.domain.settings import Settings
from subagents_nb.domain.snapshot import Snapshot
from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import parse_duration
from subagents_nb.errors import LaunchRefused, RequestError, StoreError
from subagents_nb.launching.asked import Asked, somewhere
from subagents_nb.launching.facts import gather_facts
from subagents_nb.launching.flows import models_of
from subagents_nb.launching.gitfacts import worktrees_of
from subagents_nb.launching.prices import price_problems
from subagents_nb.launching.whence import meant_run
from subagents_nb.planning import Facts
from subagents_nb.planning import draft as plan_draft
from subagents_nb.planning.elsewhere import comes_to_embedded, settings_elsewhere, without_a_model
from subagents_nb.store import FileRuns, open_home
from subagents_nb.store.contracts import models_of as models_of_store


@dataclass(frozen=True, slots=True)
class Planned:
    """A launch, planned; `draft` is None if it can't be planned here.

    `reasons` say why no run of it can begin; a run that is there already may stand in all the same: one of `draft`, or
    one of `others`, the plans it may have had elsewhere, by another version or with another default model.
    """

    draft: Draft | None
    others: tuple[Draft, ...]
    reasons: tuple[str, ...]
    catalog: AgentCatalog
    settings: Settings
    senseless: bool = False  # what was asked for can't be asked anywhere, so nothing can stand in


def plan_launch(asked: Asked) -> Planned:
    """Return the plan of a launch.

    Raises:
        LaunchRefused: its settings can't be used.
    """
    request, attached, lost = _attach(asked.request)
    facts = gather_facts(request.cwd, environ=os.environ, models=models_of(request), worktrees=worktrees_of(request))
    facts = facts.model_copy(update={"attached_schema": attached})
    base = Path(facts.cwd) if facts.cwd_problem is None else somewhere()
    try:
        settings = load_settings(base, environ=os.environ, reserved=PROVIDER_NAMES)
    except RequestError as error:
        raise LaunchRefused([*asked.reasons, *getattr(error, "reasons", (str(error),))]) from error
    settings, wrong = _with_defaults(settings, asked.defaults)
    catalog = discover(base, registered=registered_agents())
    draft: Draft | None = None
    try:
        draft = plan_draft(request, catalog=catalog, settings=settings, facts=facts)
        reasons = (*draft.start_problems, *price_problems(draft, draft.usage_budget))
    except LaunchRefused as refused:
        reasons = refused.reasons
    if lost:
        reasons = (lost, *(reason for reason in reasons if not reason.startswith(_NOT_ATTACHED)))
    if asked.reasons or lost or wrong:
        return Planned(None, (), (*asked.reasons, *wrong, *reasons), catalog, settings, senseless=True)
    others = tuple(_others(draft, request, catalog, settings, facts))
    return Planned(draft, others, tuple(reasons), catalog, settings)


def _others(
    own: Draft | None, request: LaunchRequest, catalog: AgentCatalog, settings: Settings, facts: Facts
) -> Iterator[Draft]:
    seen = {own.digest} if own is not None else set()
    drafts = [own] if own is not None else []
    if own is None or without_a_model(own):
        unnamed = comes_to_embedded(settings, facts)
        for elsewhere in settings_elsewhere(settings, _models_used(), unnamed=unnamed):
            try:
                drafts.append(plan_draft(request, catalog=catalog, settings=elsewhere, facts=facts))
            except LaunchRefused:
                continue  # the reasons that count are those against the plan of its own
    for draft in drafts:
        for one in (draft, draft.model_copy(update={"inputs": tuple(kept.by_file() for kept in draft.inputs)})):
            if one.digest not in seen:
                seen.add(one.digest)
                yield one


def _models_used() -> list[ModelChoice]:
    with contextlib.suppress(StoreError):  # said by whoever launches, or looks for a run
        return models_of_store(open_home(create=False))
    return []


_DEFAULTS = {"model": "default_model", "thinking": "default_thinking", "timeout": "timeout_s",
             "tool_timeout": "tool_timeout_s"}  # fmt: skip


def _with_defaults(settings: Settings, defaults: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings with a kernel's own, which come before those of files and behind step, run and agent.

    And what is wrong with them.
    """
    wrong: list[str] = []
    given: dict[str, Any] = {}
    for name, value in defaults.items():
        try:
            given[_DEFAULTS.get(name, name)] = parse_duration(value) if name.endswith("timeout") else value
        except ValueError as error:
            wrong.append(f"the default of {name}: {error}")
    if not given:
        return settings, tuple(wrong)
    try:
        return Settings.model_validate({**settings.model_dump(), **given}), tuple(wrong)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        return settings, (*wrong, *(f"the default of {fault['loc'][0]}: {fault['msg']}" for fault in faults))


_FIRST = "step 1 (attached run): "
_NOT_ATTACHED = f"{_FIRST}there is no run"  # as planning says it, which can't look


def _attach(request: LaunchRequest) -> tuple[LaunchRequest, dict[str, Any] | None, str]:
    """Find the run that a chain begins with by its name.

    Return the request with its id, its answer's schema, and why it can't be found.
    """
    flow = request.flow
    first = flow.items[0] if flow is not None and flow.items else None
    if flow is None or not isinstance(first, Attached):
        return request, None, ""
    home = open_home(create=False)
    try:
        run_id = meant_run(home, first.run)
    except RequestError as error:
        return request, None, f"{_FIRST}{error}"
    snapshot = FileRuns(home).snapshot(run_id, whole=True)
    problem = _no_answer(snapshot)
    plan = snapshot.plan
    schema = plan.steps[-1].output_schema if plan is not None and plan.steps and not plan.is_flow else None
    items = (first.model_copy(update={"run": run_id}), *flow.items[1:])
    request = request.model_copy(update={"flow": flow.model_copy(update={"items": items})})
    return request, schema, f"{_FIRST}{problem}" if problem is not None else ""


def _no_answer(snapshot: Snapshot) -> str | None:
    """Return why a run will never come to something that a chain could go on from."""
    name, state = snapshot.name, snapshot.state
    if state is RunState.PAUSED:
        return f"{name} is paused: resume it, and attach to the run that goes on"
    if snapshot.ended and state not in (RunState.COMPLETE, RunState.PARTIAL):
        return f"{name} ended as {state or 'unreadable'}: launch it again, and attach to that run"
    return None
