"""What is asked of a step's model beside its task: whether the model has it is said before anything starts.

What the person asks for at the launch and the model lacks is a reason against it. What an agent's file or the settings
say holds for whichever model comes, so there it is a note.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast, get_args

from subagents_nb.domain.agents.agent import AgentDefinition, PromptCache
from subagents_nb.domain.agents.model_names import NAMES_ITS_OWN, aliases_of
from subagents_nb.domain.agents.model_powers import cache_of, caches_on_request, has_fast_tier, levels_of
from subagents_nb.domain.agents.models import ModelChoice, at_its_own_server
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.launch_environment import LaunchEnvironment

_CACHES: tuple[str, ...] = get_args(PromptCache)


class ModelContext(Protocol):
    """What a step is planned on."""

    @property
    def settings(self) -> Settings: ...

    @property
    def environment(self) -> LaunchEnvironment: ...

    def note(self, text: str) -> None:
        """Add a quiet remark."""
        ...


class _Setting(NamedTuple):
    """Where to say that a model lacks something: it was asked for, or it is only what files say."""

    asked: bool
    context: ModelContext
    reasons: Reasons

    def lacks(self, option: str, why: str, rest: str) -> None:
        if self.asked:
            self.reasons.append(f"{option}: {why}", path=(option,))
        else:
            self.context.note(f"Model {why}; {rest}.")


def plan_model_options(
    asked: Step, agent: AgentDefinition | None, model: ModelChoice, context: ModelContext, reasons: Reasons
) -> dict[str, Any]:
    """Return the fields of a step that say how its model is asked, after adding what it lacks."""
    own = at_its_own_server(model, context.environment.environ_names)
    by_call = asked.thinking is not None or (model.origin == "call" and _written_level(model))
    _check_thinking(model, own, _Setting(by_call, context, reasons))
    return {
        "prompt_cache": _cache(asked, agent, model, context, reasons),
        "fast": _fast(asked, agent, model, context, reasons),
        "verify_model": own and model.provider in NAMES_ITS_OWN,
        "response_aliases": aliases_of(context.settings.response_aliases, model.provider, model.name),
    }


def _written_level(model: ModelChoice) -> bool:
    return model.thinking is not None and model.requested.endswith(f":{model.thinking}")


def _check_thinking(model: ModelChoice, own: bool, setting: _Setting) -> None:
    level = model.thinking
    levels = levels_of(model) if own or model.kind == "local" else None  # another server may have other models
    if level is None or levels is None or level in levels:
        return
    if not levels:
        if level != "off":
            why = f"{model.label} does not think; leave the level out, or name a model that does"
            setting.lacks("thinking", why if setting.asked else f"{model.label} does not think", f"{level} is left out")
    elif level == "off":
        why = f"{model.label} can't do without thinking; it has {', '.join(levels)}"
        setting.lacks("thinking", why, f"it thinks as little as it can instead of {level}")
    else:
        why = f"{model.label} has no thinking level {level}; it has {', '.join(levels)}"
        setting.lacks("thinking", why, "it takes the nearest")


def _cache(
    asked: Step, agent: AgentDefinition | None, model: ModelChoice, context: ModelContext, reasons: Reasons
) -> PromptCache | None:
    files = agent.prompt_cache if agent is not None and agent.prompt_cache else context.settings.prompt_cache
    by_call = asked.prompt_cache is not None
    tier = {True: "on", False: "off"}.get(cast(bool, asked.prompt_cache), asked.prompt_cache) if by_call else files
    if tier is None:
        return None
    if tier not in _CACHES:
        reasons.append(f"prompt_cache: there is no {tier!r}; it is one of {', '.join(_CACHES)}", path=("prompt_cache",))
        return None
    cache = cast(PromptCache, tier)
    if cache == "off" or model.kind == "scripted":  # which stands in for any other
        return cache
    setting = _Setting(by_call, context, reasons)
    if not caches_on_request(model):
        why = f"{model.label} can't be asked to keep the beginning of a prompt; some providers keep it by themselves"
        setting.lacks("prompt_cache", why, f"{cache} is left out")
        return None
    tiers = cache_of(model) or ()
    if cache != "on" and cache not in tiers:
        tier_names = " or ".join(tiers)
        why = f"{model.label} keeps the beginning of a prompt for {tier_names or 'as long as it likes'}"
        setting.lacks("prompt_cache", f"{why}, not for {cache}", "it is asked for no length of time")
        return "on"
    return cache


def _fast(
    asked: Step, agent: AgentDefinition | None, model: ModelChoice, context: ModelContext, reasons: Reasons
) -> bool:
    by_file = agent is not None and bool(agent.fast)
    wanted = asked.fast if asked.fast is not None else by_file
    if not wanted or model.kind == "scripted" or has_fast_tier(model):
        return wanted
    why = f"{model.label} has no faster tier to ask for; OpenAI, Google and some models of Anthropic have one"
    _Setting(asked.fast is not None, context, reasons).lacks("fast", why, "it is left out")
    return False
