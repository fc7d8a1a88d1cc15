"""Plan a launch from where it is asked for, and as it may have been planned where its run was made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subagents_nb.catalog import load_settings
from subagents_nb.domain.agents.agent import AgentCatalog
from subagents_nb.domain.agents.models import PROVIDER_NAMES, ModelChoice
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.options import BY_NAME
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.domain.values.reading import read
from subagents_nb.domain.values.words import parse_duration
from subagents_nb.errors import LaunchRefused, RequestError, StoreError
from subagents_nb.launching.composing.flows import folders_of, models_of
from subagents_nb.launching.composing.parsed_launch import ParsedLaunch, somewhere
from subagents_nb.launching.composing.run_references import resolve_references
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.launching.gathering.prices import price_problems
from subagents_nb.launching.gathering.repository_lookup import with_repository, worktrees_of
from subagents_nb.launching.gathering.sandboxes import sandbox_problems
from subagents_nb.launching.gathering.skill_folders import SkillLookups
from subagents_nb.launching.gathering.trust_lookup import Brought, brought_here, environment_of
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning import draft as plan_draft
from subagents_nb.planning.alternatives import alternative_settings, comes_to_embedded, without_a_model
from subagents_nb.store import open_home
from subagents_nb.store.runs.contracts import models_of as models_of_store
from subagents_nb.store.runs.skill_files import SkillFiles


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
    brought: Brought | None = None  # of the project, which can act
    skills: Mapping[str, SkillFiles] = field(default_factory=dict)  # those of its plans, by SHA-256
    senseless: bool = False  # what was asked for can't be asked anywhere, so nothing can stand in


def plan_launch(asked: ParsedLaunch) -> Planned:
    """Return the plan of a launch.

    Raises:
        LaunchRefused: its settings can't be used.
    """
    request, referred = resolve_references(asked.request)
    environment = look_up_environment(
        request.cwd,
        environ=os.environ,
        models=models_of(request),
        folders=folders_of(request),
    )
    environment = environment.model_copy(update=referred)
    base = Path(environment.cwd) if environment.cwd_problem is None else somewhere()
    root = Path(environment.project_root) if environment.project_root else None
    try:
        settings = load_settings(base, environ=os.environ, reserved=PROVIDER_NAMES, root=root)
    except RequestError as error:
        raise LaunchRefused([*asked.reasons, *getattr(error, "reasons", (str(error),))]) from error
    settings, wrong = _with_defaults(settings, asked.defaults)
    catalog = usable_agents(base, settings)
    project = brought_here(base, catalog, settings, root=root)
    environment = environment.model_copy(update=environment_of(project, base))
    environment = with_repository(environment, worktrees_of(request, catalog, settings.default_agent))
    skills = SkillLookups(base)
    environment = environment.model_copy(update={"skills": skills.lookups})
    draft: Draft | None = None
    try:
        draft = skills.planned(lambda: plan_draft(request, catalog=catalog, settings=settings, environment=environment))
        here = (*price_problems(draft, draft.usage_budget), *sandbox_problems(draft, draft.cwd))
        reasons = (*draft.start_problems, *here)
    except LaunchRefused as refused:
        reasons = refused.reasons
    if asked.reasons or environment.attached_problem is not None or wrong:
        return Planned(None, (), (*asked.reasons, *wrong, *reasons), catalog, settings, project, senseless=True)
    others = tuple(_others(draft, request, catalog, settings, environment))
    return Planned(draft, others, tuple(reasons), catalog, settings, project, skills.files)


def _others(
    own: Draft | None, request: LaunchRequest, catalog: AgentCatalog, settings: Settings, environment: LaunchEnvironment
) -> Iterator[Draft]:
    seen = {own.digest} if own is not None else set()
    drafts = [own] if own is not None else []
    if own is None or without_a_model(own):
        unnamed = comes_to_embedded(settings, environment)
        for other_settings in alternative_settings(settings, _models_used(), unnamed=unnamed):
            try:
                drafts.append(plan_draft(request, catalog=catalog, settings=other_settings, environment=environment))
            except LaunchRefused:
                continue  # the reasons that count are those against the plan of its own
    for draft in drafts:
        by_file = [draft.model_copy(update={"inputs": tuple(kept.by_file() for kept in draft.inputs)})]
        for one in (draft, *(by_file if draft.inputs else ())):
            if one is not own and one.digest not in seen:
                seen.add(one.digest)
                yield one


def _models_used() -> list[ModelChoice]:
    with contextlib.suppress(StoreError):  # said by whoever launches, or looks for a run
        return models_of_store(open_home(create=False))
    return []


def _with_defaults(settings: Settings, defaults: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings with a kernel's own, which come before those of files and behind step, run and agent.

    And what is wrong with them.
    """
    wrong: list[str] = []
    given: dict[str, Any] = {}
    for name, value in defaults.items():
        one = BY_NAME.get(name)
        try:
            timed = one is not None and one.kind == "duration"
            given[name if one is None else one.in_settings] = parse_duration(value) if timed else value
        except ValueError as error:
            wrong.append(f"the default of {name}: {error}")
    if not given:
        return settings, tuple(wrong)
    merged, faults = read(Settings, {**settings.model_dump(), **given})
    return merged or settings, (*wrong, *(f"the default of {fault.at()}" for fault in faults))
