"""What a model can be asked for: our table of names, held against the profiles of the library that asks them."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic_ai.models import KnownModelName
from pydantic_ai.models.openai._reasoning import resolve_openai_thinking_effort
from pydantic_ai.profiles.anthropic import anthropic_model_profile, resolve_anthropic_effort
from pydantic_ai.profiles.google import google_model_profile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openrouter import OpenRouterProvider

from subagents_nb.domain.agents.agent import THINKING_LEVELS
from subagents_nb.domain.agents.model_powers import cache_of, caches_on_request, has_fast_tier, levels_of
from subagents_nb.domain.agents.models import ModelChoice, parse_model

_NAMES = get_args(KnownModelName.__value__)
OPENAI = sorted(
    {name.partition(":")[2] for name in _NAMES if name.startswith("openai:")}
    | {"gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-pro", "gpt-5-codex", "gpt-5-chat-latest", "gpt-5.1", "gpt-5.1-codex",
       "gpt-5.2", "gpt-5.2-pro", "gpt-5.2-chat-latest", "gpt-5.3-codex", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-pro",
       "gpt-5.5", "gpt-5.5-pro", "gpt-5.6", "gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-3.5-turbo", "chatgpt-4o-latest",
       "o1", "o3", "o3-mini", "o4-mini"}
)  # fmt: skip
ANTHROPIC = sorted(
    {name.partition(":")[2] for name in _NAMES if name.startswith("anthropic:")}
    | {"claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5", "claude-opus-4-1", "claude-opus-5", "claude-sonnet-4-5"}
)
GOOGLE = ["gemini-1.5-pro", "gemini-2.0-flash", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite",
          "gemini-3-pro-preview", "gemini-3.1-pro-preview", "gemini-3.8-flash", "gemini-4-argon"]  # fmt: skip


def model(text: str) -> ModelChoice:
    return parse_model(text, origin="call", endpoints={})


@pytest.mark.parametrize("name", OPENAI)
def test_openais_levels_are_those_that_the_library_sends_as_they_are(name: str) -> None:
    profile = OpenAIProvider.model_profile(name) or {}
    most = bool(profile.get("openai_responses_supports_max_reasoning_effort"))
    sent = {
        level: resolve_openai_thinking_effort(False if level == "off" else level, profile, supports_max=most)  # type: ignore[arg-type]
        for level in THINKING_LEVELS
    }
    kept = tuple(level for level in THINKING_LEVELS if sent[level] == ("none" if level == "off" else level))
    assert levels_of(model(f"openai:{name}")) == (kept if profile.get("supports_thinking") else ())
    assert (cache_of(model(f"openai:{name}")) or ()) == tuple(profile.get("supported_cache_retentions") or ())


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropics_levels_are_those_that_the_library_sends_as_they_are(name: str) -> None:
    # Not at the head: it loads the whole SDK, a second and more for each process that collects.
    from pydantic_ai.providers.anthropic import AnthropicProvider

    profile = anthropic_model_profile(name) or {}
    xhigh, most = (bool(profile.get(f"anthropic_supports_{level}_effort")) for level in ("xhigh", "max"))
    kept = [
        level
        for level in THINKING_LEVELS[1:]
        if not profile.get("anthropic_supports_effort")
        or resolve_anthropic_effort(level, supports_xhigh=xhigh, supports_max=most) == level  # type: ignore[arg-type]
    ]
    off = [] if profile.get("thinking_always_enabled") else ["off"]
    assert levels_of(model(f"anthropic:{name}")) == (*off, *kept)
    retained = (AnthropicProvider.model_profile(name) or {}).get("supported_cache_retentions")
    assert cache_of(model(f"anthropic:{name}")) == retained
    assert has_fast_tier(model(f"anthropic:{name}")) == bool(profile.get("anthropic_supports_fast_speed"))


@pytest.mark.parametrize("name", GOOGLE)
def test_googles_levels_fit_what_the_library_knows_of_them(name: str) -> None:
    profile = google_model_profile(name) or {}
    levels = levels_of(model(f"google:{name}"))
    assert levels is not None and bool(levels) == bool(profile.get("supports_thinking"))
    if profile.get("google_supports_thinking_level"):
        assert {level.upper() for level in levels} == dict(profile)["google_thinking_levels"]
    elif levels:
        assert ("off" in levels) == (not profile.get("thinking_always_enabled"))


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4.5", "google/gemini-2.5-flash", "openai/gpt-5-mini"])
def test_a_broker_keeps_prompts_where_the_library_can_ask_it_to(name: str) -> None:
    profile = OpenRouterProvider.model_profile(name) or {}
    assert caches_on_request(model(f"openrouter:{name}")) == bool(profile.get("supports_cache"))
    assert (cache_of(model(f"openrouter:{name}")) or ()) == profile.get("supported_cache_retentions")


def test_what_the_table_does_not_know_it_says_so() -> None:
    assert levels_of(model("openai:house-model")) is None and levels_of(model("groq:openai/gpt-oss-120b")) is None
    assert levels_of(model("local:smollm2")) == () and not has_fast_tier(model("deepseek:deepseek-chat"))
