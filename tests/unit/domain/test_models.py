"""Model strings, and whose word counts."""

from __future__ import annotations

import pytest

from subagents_nb.domain.agents.models import PROVIDERS, UnknownModel, choose_model, extra_for, parse_model
from subagents_nb.domain.agents.settings import Endpoint, Settings

LAB = {"lab": Endpoint(base_url="http://lab:8000/v1", key_env="LAB_KEY"), "bare": Endpoint(base_url="http://b/v1")}
NONE: frozenset[str] = frozenset()

READ = [
    ("openai:gpt-5-mini", "provider", "openai", "gpt-5-mini", None),
    ("openai/gpt-5-mini", "provider", "openai", "gpt-5-mini", None),
    ("openai/gpt-5-mini:high", "provider", "openai", "gpt-5-mini", "high"),
    ("openai:gpt-5-mini:minimal", "provider", "openai", "gpt-5-mini", "minimal"),
    ("openai-chat:gpt-5", "provider", "openai", "gpt-5", None),
    ("anthropic/claude-sonnet-5-5:xhigh", "provider", "anthropic", "claude-sonnet-5-5", "xhigh"),
    ("google-gla:gemini-2.5-flash", "provider", "google", "gemini-2.5-flash", None),
    ("gemini:gemini-2.5-pro", "provider", "google", "gemini-2.5-pro", None),
    ("openrouter:anthropic/claude-sonnet-4", "provider", "openrouter", "anthropic/claude-sonnet-4", None),
    ("openrouter/anthropic/claude-sonnet-4", "provider", "openrouter", "anthropic/claude-sonnet-4", None),
    ("openrouter/meta/llama-4:free", "provider", "openrouter", "meta/llama-4:free", None),
    ("openrouter/meta/llama-4:free:low", "provider", "openrouter", "meta/llama-4:free", "low"),
    ("openrouter:openai/gpt-5:off", "provider", "openrouter", "openai/gpt-5", "off"),
    ("ollama:llama3:70b", "provider", "ollama", "llama3:70b", None),
    ("lab:meta/llama-4", "endpoint", "lab", "meta/llama-4", None),
    ("lab/qwen:medium", "endpoint", "lab", "qwen", "medium"),
    ("local:smollm2", "local", "local", "smollm2", None),
    ("scripted:echo", "scripted", "scripted", "echo", None),
    ("scripted:scripts/a.json", "scripted", "scripted", "scripts/a.json", None),
    ("claude-opus-5-5", "provider", "anthropic", "claude-opus-5-5", None),
    ("sonnet", "provider", "anthropic", "claude-sonnet-5-5", None),
    ("anthropic:haiku", "provider", "anthropic", "claude-haiku-5-5", None),
    ("gpt-5", "provider", "openai", "gpt-5", None),
    ("o3", "provider", "openai", "o3", None),
    ("o4-mini:high", "provider", "openai", "o4-mini", "high"),
    ("gemini-2.5-pro", "provider", "google", "gemini-2.5-pro", None),
    ("  openai:gpt-5  ", "provider", "openai", "gpt-5", None),
]


@pytest.mark.parametrize(("text", "kind", "provider", "name", "thinking"), READ, ids=[row[0] for row in READ])
def test_a_model_string_is_read(text: str, kind: str, provider: str, name: str, thinking: str | None) -> None:
    choice = parse_model(text, origin="call", endpoints=LAB)
    assert (choice.kind, choice.provider, choice.name, choice.thinking) == (kind, provider, name, thinking)
    assert choice.requested == text.strip()


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("opneai:gpt-5", "Did you mean 'openai'?"),
        ("antropic/claude", "Did you mean 'anthropic'?"),
        ("lbb:x", "Did you mean 'lab'?"),
        ("openai:", "names a provider but no model"),
        ("openai/", "names a provider but no model"),
        ("mystery", "no provider or endpoint named 'mystery'"),
        ("local:llama", "one embedded model"),
        ("openai", "no provider or endpoint named"),
        ("http://evil/v1", "no provider or endpoint named 'http'"),
        (":gpt-5", "no provider or endpoint named ''"),
        ("", "no provider or endpoint named ''"),
        ("o3x", "no provider or endpoint named 'o3x'"),
    ],
)
def test_a_string_that_names_nothing_says_what_would(text: str, fragment: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_model(text, origin="call", endpoints=LAB)
    assert fragment in str(caught.value)


def test_the_users_endpoint_wins_over_our_other_names_for_a_provider() -> None:
    mine = {"claude": Endpoint(base_url="http://mine/v1")}
    choice = parse_model("claude:whatever", origin="call", endpoints=mine)
    assert (choice.kind, choice.provider) == ("endpoint", "claude")


def test_a_level_given_apart_wins_over_the_one_in_the_string() -> None:
    assert parse_model("openai:gpt-5:high", origin="call", endpoints={}, thinking="low").thinking == "low"


def test_keys_are_named_and_only_where_one_is_needed() -> None:
    assert parse_model("google:x", origin="call", endpoints={}).key_env == ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    assert parse_model("lab:x", origin="call", endpoints=LAB).key_env == ("LAB_KEY",)
    for text in ("bare:x", "ollama:x", "local:smollm2", "scripted:echo"):
        assert parse_model(text, origin="call", endpoints=LAB).key_env == ()


def test_an_extra_is_needed_by_providers_only() -> None:
    assert extra_for(parse_model("anthropic:x", origin="call", endpoints={})) == "anthropic"
    assert extra_for(parse_model("openai:x", origin="call", endpoints={})) is None
    assert extra_for(parse_model("lab:x", origin="call", endpoints=LAB)) is None


ORDER = [
    ({"call": "scripted:echo", "agent": "openai:a", "setting": "openai:s", "env": True}, "scripted:echo", "call"),
    ({"call": None, "agent": "openai:a", "setting": "openai:s", "env": True}, "openai:a", "agent"),
    ({"call": "inherit", "agent": "openai:a", "setting": "openai:s", "env": True}, "openai:a", "agent"),
    ({"call": None, "agent": "inherit", "setting": "openai:s", "env": True}, "openai:s", "settings"),
    ({"call": "", "agent": None, "setting": "openai:s", "env": True}, "openai:s", "settings"),
    ({"call": None, "agent": None, "setting": None, "env": True}, "anthropic:claude-sonnet-5-5", "environment"),
    ({"call": None, "agent": None, "setting": None, "env": False}, "local:smollm2", "embedded"),
]


@pytest.mark.parametrize(("given", "label", "origin"), ORDER, ids=[row[2] + str(i) for i, row in enumerate(ORDER)])
def test_the_call_wins_over_agent_settings_environment_and_the_embedded_model(
    given: dict[str, str | None], label: str, origin: str
) -> None:
    choice = choose_model(
        call=given["call"],
        agent=given["agent"],
        settings=Settings(default_model=given["setting"]),
        environ_names=frozenset({"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}) if given["env"] else NONE,
    )
    assert (choice.label, choice.origin) == (label, origin)


def test_a_key_in_the_environment_chooses_in_the_order_of_the_list() -> None:
    for provider in PROVIDERS:
        if provider.default_model is None:
            continue
        for key in provider.key_env:
            choice = choose_model(call=None, agent=None, settings=Settings(), environ_names=frozenset({key}))
            assert choice.label == f"{provider.name}:{provider.default_model}"


def test_a_broken_winner_is_refused_and_not_passed_over() -> None:
    with pytest.raises(UnknownModel):
        choose_model(call="nobody:x", agent="openai:a", settings=Settings(), environ_names=NONE)
