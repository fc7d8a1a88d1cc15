"""Under which settings a launch was perhaps planned elsewhere: with a default model or an endpoint unknown here.

Only to find a run that can stand in: what is launched is planned with the settings that are in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents_nb.domain.agents.models import ModelChoice, UnknownModel, choose_model
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.domain.plans.plan import Draft, choices_of
from subagents_nb.planning.launch_environment import LaunchEnvironment


def without_a_model(draft: Draft) -> bool:
    """Say whether a step of a plan has the embedded model only because nobody named one and no key is set."""
    return any(choice.origin == "embedded" for choice in choices_of(draft.steps, draft.items))


def comes_to_embedded(settings: Settings, environment: LaunchEnvironment) -> bool:
    """Say whether a step for which nobody names a model comes to the embedded one here."""
    try:
        choice = choose_model(call=None, agent=None, settings=settings, environ_names=environment.environ_names)
    except UnknownModel:
        return False
    return choice.origin == "embedded"


def alternative_settings(settings: Settings, used: Sequence[ModelChoice], *, unnamed: bool) -> Iterator[Settings]:
    """Yield the settings that others may have had, for each of the models that stored runs used, newest first.

    A default model counts only where these settings have none and `unnamed` says that a step needs one; an endpoint
    only under a name that these settings do not know. So what is named here stays what it is.
    """
    newest: dict[str, Endpoint] = {}
    for choice in used:
        if choice.endpoint is not None:
            newest.setdefault(choice.provider, choice.endpoint)
    seen: list[tuple[str | None, dict[str, Endpoint]]] = [(settings.default_model, settings.endpoints)]
    for choice in used:
        its_own = {choice.provider: choice.endpoint} if choice.endpoint is not None else {}
        endpoints = newest | its_own | settings.endpoints
        default = settings.default_model
        if unnamed and default is None and choice.origin in ("settings", "environment"):
            default = choice.requested
        if (default, endpoints) not in seen:
            seen.append((default, endpoints))
            yield settings.model_copy(update={"default_model": default, "endpoints": endpoints})
