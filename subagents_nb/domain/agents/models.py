"""Model strings: how a person names a model, and what a plan binds.

Accepted: `provider:model` (pydantic-ai), `provider/model` with an optional `:thinking` (pi), `local:smollm2` (the
embedded model), `scripted:NAME` (the deterministic twin), `ENDPOINT:model` for an endpoint of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Literal

from subagents_nb.domain.agents.agent import THINKING_LEVELS, Thinking
from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import nearest

ModelKind = Literal["provider", "endpoint", "local", "scripted"]
ModelOrigin = Literal["call", "agent", "settings", "environment", "embedded"]

EMBEDDED = "local:smollm2"


class Provider(Value):
    """A provider we can name: the variables that hold its key, the extra of ours that carries its client."""

    name: str
    key_env: tuple[str, ...]
    extra: str | None = None
    # Chosen when only its key is in the environment and nobody named a model.
    default_model: str | None = None
    keyless: bool = False
    base_url_env: str | None = None  # a variable in which users of the vendor's SDK name another server


# In the order in which a key found in the environment decides the default.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="anthropic", key_env=("ANTHROPIC_API_KEY",), extra="anthropic", default_model="claude-sonnet-5-5",
        base_url_env="ANTHROPIC_BASE_URL",
    ),
    Provider(
        name="openai", key_env=("OPENAI_API_KEY",), default_model="gpt-5-mini", base_url_env="OPENAI_BASE_URL",
    ),
    Provider(
        name="google", key_env=("GOOGLE_API_KEY", "GEMINI_API_KEY"), extra="google", default_model="gemini-2.5-flash",
        base_url_env="GOOGLE_GEMINI_BASE_URL",
    ),
    Provider(name="openrouter", key_env=("OPENROUTER_API_KEY",), default_model="openai/gpt-5-mini"),
    Provider(name="deepseek", key_env=("DEEPSEEK_API_KEY",), default_model="deepseek-chat"),
    Provider(name="groq", key_env=("GROQ_API_KEY",), extra="groq", base_url_env="GROQ_BASE_URL"),
    Provider(name="mistral", key_env=("MISTRAL_API_KEY",), extra="mistral"),
    Provider(name="together", key_env=("TOGETHER_API_KEY",)),
    Provider(name="fireworks", key_env=("FIREWORKS_API_KEY",)),
    Provider(name="cerebras", key_env=("CEREBRAS_API_KEY",)),
    Provider(name="moonshotai", key_env=("MOONSHOTAI_API_KEY",), base_url_env="MOONSHOTAI_BASE_URL"),
    Provider(name="ollama", key_env=("OLLAMA_API_KEY",), keyless=True, base_url_env="OLLAMA_BASE_URL"),
)  # fmt: skip
PROVIDER_NAMES = frozenset(p.name for p in PROVIDERS) | {"local", "scripted"}
_ALIASES = {"google-gla": "google", "gemini": "google", "claude": "anthropic", "openai-chat": "openai"}
_BY_NAME = {p.name: p for p in PROVIDERS}
# Bare names that people use, with the provider they mean.
_BARE = (
    (re.compile(r"claude|sonnet\Z|opus\Z|haiku\Z"), "anthropic"),
    (re.compile(r"gpt-|o[134](-|\Z)|chatgpt"), "openai"),
    (re.compile(r"gemini-"), "google"),
)
_SHORT = {"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "haiku": "claude-haiku-5-5"}


class ModelChoice(Value):
    """The one model that a step uses, and why it is this one."""

    kind: ModelKind
    provider: str
    name: str
    origin: ModelOrigin
    requested: str = ""
    thinking: Thinking | None = None
    endpoint: Endpoint | None = None
    # Variables, any of which may hold the key. Names only: the value never enters a plan.
    key_env: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return `provider:model`, the way people read it."""
        return f"{self.provider}:{self.name}"


class UnknownModel(ValueError):
    """A model string that names nothing we know; the text says what would."""


def choose_model(
    *,
    call: str | None,
    agent: str | None,
    settings: Settings,
    environ_names: frozenset[str],
    thinking: Thinking | None = None,
) -> ModelChoice:
    """Pick the model: the call's, the agent's, the settings', the first provider with a key, or the embedded one.

    Raises:
        UnknownModel: the winning string can't be understood.
    """
    candidates: tuple[tuple[str | None, ModelOrigin], ...] = (
        (call, "call"),
        (agent, "agent"),
        (settings.default_model, "settings"),
    )
    for text, origin in candidates:
        if text and text != "inherit":
            return parse_model(text, origin=origin, endpoints=settings.endpoints, thinking=thinking)
    for provider in PROVIDERS:
        if provider.default_model and environ_names.intersection(provider.key_env):
            text = f"{provider.name}:{provider.default_model}"
            return parse_model(text, origin="environment", endpoints={}, thinking=thinking)
    return parse_model(EMBEDDED, origin="embedded", endpoints={}, thinking=thinking)


def parse_model(
    text: str, *, origin: ModelOrigin, endpoints: Mapping[str, Endpoint], thinking: Thinking | None = None
) -> ModelChoice:
    """Turn a model string into a choice. `thinking` given apart wins over a `:level` at the end of the string.

    Raises:
        UnknownModel: no provider or endpoint has this name.
    """
    requested = text.strip()
    body, level = _split_thinking(requested)
    provider, name = _split_provider(body, endpoints)
    if not name:
        raise UnknownModel(f"the model {requested!r} names a provider but no model; write {provider}:MODEL")
    common = {"name": name, "origin": origin, "requested": requested, "thinking": thinking or level}
    if provider in endpoints:
        endpoint = endpoints[provider]
        keys: tuple[str, ...] = (endpoint.key_env,) if endpoint.key_env else ()
        return ModelChoice.model_validate(
            {**common, "kind": "endpoint", "provider": provider, "endpoint": endpoint, "key_env": keys}
        )
    if provider == "local":
        if name != "smollm2":
            raise UnknownModel(f"there is one embedded model, local:smollm2, not local:{name}")
        return ModelChoice.model_validate({**common, "kind": "local", "provider": "local"})
    if provider == "scripted":
        return ModelChoice.model_validate({**common, "kind": "scripted", "provider": "scripted"})
    provider_row = _BY_NAME[provider]
    name = _SHORT.get(name, name) if provider == "anthropic" else name
    keys = () if provider_row.keyless else provider_row.key_env
    return ModelChoice.model_validate(
        {**common, "name": name, "kind": "provider", "provider": provider, "key_env": keys}
    )


def script_meant(text: str | None) -> str | None:
    """Return the script of the workspace that a model string means, in any of its spellings; None if it means none."""
    try:
        choice = parse_model(text or "", origin="settings", endpoints={})
    except UnknownModel:
        return None
    return choice.name if choice.kind == "scripted" and choice.name not in BUILTIN_SCRIPTS else None


def depends_on_machine(choice: ModelChoice) -> bool:
    """Say whether another machine may not come to this model: nobody named it, or its endpoint is a setting."""
    return choice.kind == "endpoint" or choice.origin in ("settings", "environment")


def base_url_env(provider: str) -> str:
    """Return the variable in which another server than a provider's own may be named; empty if there is none."""
    provider_row = _BY_NAME.get(provider)
    return (provider_row.base_url_env if provider_row else None) or ""


def server_variables(choices: Iterable[ModelChoice]) -> tuple[str, ...]:
    """Return the variables by which other servers than their providers' own may answer for these models."""
    return tuple({name: None for one in choices if one.kind == "provider" and (name := base_url_env(one.provider))})


def at_its_own_server(choice: ModelChoice, environ_names: Container[str]) -> bool:
    """Say whether a provider's own server is asked, as far as variables that are set and not empty tell."""
    return choice.kind == "provider" and base_url_env(choice.provider) not in environ_names


def extra_for(choice: ModelChoice) -> str | None:
    """Return the extra of this package that carries the provider's client, if it needs one."""
    provider_row = _BY_NAME.get(choice.provider)
    return provider_row.extra if provider_row and choice.kind == "provider" else None


def _split_thinking(text: str) -> tuple[str, Thinking | None]:
    head, sep, tail = text.rpartition(":")
    if sep and tail in THINKING_LEVELS and head:
        return head, tail
    return text, None


def _split_provider(body: str, endpoints: Mapping[str, Endpoint]) -> tuple[str, str]:
    known = PROVIDER_NAMES | set(endpoints)
    for sep in (":", "/"):
        head, found, tail = body.partition(sep)
        if found and head in endpoints:
            return head, tail
        head = _ALIASES.get(head, head)
        if found and head in known:
            return head, tail
    for pattern, provider in _BARE:
        if pattern.match(body) and ":" not in body and "/" not in body:
            return provider, body
    head = re.split(r"[:/]", body, maxsplit=1)[0]
    near = nearest(head, known)
    hint = f" Did you mean {near!r}?" if near else ""
    named = ", ".join(sorted(known))
    raise UnknownModel(f"no provider or endpoint named {head!r} (in the model {body!r}).{hint} Known: {named}.")
