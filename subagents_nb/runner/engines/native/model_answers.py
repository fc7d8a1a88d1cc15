"""What a model is asked with beside its task, and whether it is the one that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic_ai.models import Model

from subagents_nb.domain.agents.model_names import sameness
from subagents_nb.domain.agents.model_powers import levels_of
from subagents_nb.domain.agents.models import at_its_own_server
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import Noticed, StepFailed
from subagents_nb.runner.engines.engine import Report


def request_settings(step: StepPlan, model: Model) -> dict[str, Any]:
    """Return the settings of a request that say how the model shall work."""
    settings: dict[str, Any] = {}
    if step.thinking and _thinks(model):
        settings["thinking"] = False if step.thinking == "off" else step.thinking
    if step.prompt_cache is not None:
        settings["cache"] = {"on": True, "off": False}.get(step.prompt_cache, step.prompt_cache)
    if step.fast:
        settings |= {"anthropic_speed": "fast"} if step.model.provider == "anthropic" else {"service_tier": "priority"}
    return settings


def left_out(step: StepPlan, model: Model, environ: Mapping[str, str]) -> Iterator[Noticed]:
    """Yield what was asked for and is left out, where the plan could not know it."""
    known = levels_of(step.model) is not None and at_its_own_server(step.model, _set(environ))
    if step.thinking in (None, "off") or _thinks(model) or known or step.model.kind in ("local", "scripted"):
        return
    yield Noticed("no-thinking", f"Nothing says that {step.model.label} thinks; {step.thinking} was left out.")


def window_of(step: StepPlan, model: Model, environ: Mapping[str, str]) -> int:
    """Return how many tokens the model can read at once; 0: nobody here knows.

    Of a server of the person's own only he knows: a model may have any name there, and less room than it could have.
    """
    if step.model.kind == "local":
        from subagents_nb.local_model import WINDOW_TOKENS

        return WINDOW_TOKENS
    return (model.context_window or 0) if at_its_own_server(step.model, _set(environ)) else 0


def judge_of(step: StepPlan, model: Model, report: Report) -> Callable[[str], None]:
    """Return what takes the name of the model that answered, as the provider says it."""

    def judge(answered: str) -> None:
        chosen, asked = step.model, model.model_name
        likeness = sameness(asked, answered, step.response_aliases)
        if likeness == "other" and step.verify_model:
            raise StepFailed(
                "other-model",
                f"the provider answered as {answered}, not {asked}; if that is the same, add it to "
                f'response_aliases: "{chosen.label}" = ["{answered}"]',
            )
        if likeness != "same" and chosen.kind == "provider":
            report(Noticed("model-named-otherwise", f"{chosen.label} was asked; who answered calls itself {answered}."))

    return judge


def _thinks(model: Model) -> bool:
    return bool(model.profile.get("supports_thinking") or model.profile.get("thinking_always_enabled"))


def _set(environ: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, value in environ.items() if value)
