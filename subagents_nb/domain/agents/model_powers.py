"""What a model can be asked for besides a task: levels of thinking, a cache, a faster tier; as far as names tell it.

A plan must say what won't be carried out, and importing a model library for that would cost a launch a second. So this
is a table of the families whose names say it, and a test holds it against pydantic-ai's own profiles. None: not known
here; who carries the step out says it then.
"""

from __future__ import annotations

from subagents_nb.domain.agents.models import ModelChoice

# The first prefix that fits counts, so the longer ones stand first. Where a level is missing, the library would take
# the nearest one without a word. Empty: such a model does not think.
_ALL = "low medium high xhigh max"
_OLDER = "off minimal low medium high xhigh"
_BUDGETS = "off minimal low medium high xhigh max"  # a number of tokens stands for each
_LEVELS: dict[str, tuple[tuple[str, str], ...]] = {
    "openai": (
        ("gpt-6-astra", _ALL),
        ("gpt-6.1-sol", _ALL),
        ("gpt-6.1-terra", f"off {_ALL}"),
        ("gpt-6-sol", f"off {_ALL}"),
        ("gpt-6-luna", f"off {_ALL}"),
        ("gpt-5.6", f"off {_ALL}"),
        ("gpt-5.5-pro", "medium high xhigh"),
        ("gpt-5.5", _OLDER),
        ("gpt-5.4-pro", "medium high xhigh"),
        ("gpt-5.4", _OLDER),
        ("gpt-5.3-chat", "medium"),
        ("gpt-5.3", _OLDER),
        ("gpt-5.2-pro", "medium high xhigh"),
        ("gpt-5.2-chat", "medium"),
        ("gpt-5.2", _OLDER),
        ("gpt-5.1-codex", _OLDER.removeprefix("off ")),
        ("gpt-5.1-chat", "medium"),
        ("gpt-5.1", _OLDER),
        ("gpt-5-chat", ""),
        ("gpt-5-pro", "high"),
        ("gpt-5-codex", _OLDER.removeprefix("off ")),
        ("gpt-5", "minimal low medium high"),
        ("gpt-4", ""),
        ("gpt-3", ""),
        ("chatgpt-4", ""),
        ("o1", "low medium high"),
        ("o3", "low medium high"),
        ("o4", "low medium high"),
    ),
    "anthropic": (
        ("claude-fable-5", _ALL),
        ("claude-mythos-5", _ALL),
        ("claude-opus-5-5", _ALL),
        ("claude-opus-5", f"off {_ALL}"),
        ("claude-opus-4-8", f"off {_ALL}"),
        ("claude-opus-4-7", f"off {_ALL}"),
        ("claude-opus-4-6", "off low medium high max"),
        ("claude-opus-4-5", "off low medium high"),
        ("claude-opus-4", _BUDGETS),
        ("claude-sonnet-5", f"off {_ALL}"),
        ("claude-sonnet-4-6", "off low medium high max"),
        ("claude-sonnet-4", _BUDGETS),
        ("claude-haiku-5-5", f"off {_ALL}"),
        ("claude-haiku-4-5", _BUDGETS),
    ),
    "google": (
        ("gemini-1", ""),
        ("gemini-2.0", ""),
        ("gemini-2.5-pro", "minimal low medium high"),
        ("gemini-2.5-flash", "off minimal low medium high"),
        ("gemini-3-pro", "low high"),
        ("gemini-3.1-pro", "low medium high"),
        ("gemini-3.8-flash", "low medium high"),
        ("gemini-4", "low medium high"),
    ),
}
_TIERS: dict[str, tuple[tuple[str, str], ...]] = {
    "anthropic": (("claude-", "5m 1h"),),
    "openai": (("gpt-5.6", "30m 12h"), ("gpt-6", "30m 12h"), ("gpt-", ""), ("o1", ""), ("o3", ""), ("o4", "")),
    "openrouter": (("anthropic/claude-", "5m 1h"), ("google/gemini-", "")),
}
# OpenAI and Google sell a tier of their own to all models; Anthropic has a faster way for some.
_FAST: dict[str, tuple[str, ...]] = {
    "openai": ("",),
    "google": ("",),
    "anthropic": (
        "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-fable-5-2",
        "claude-mythos-5-2",
    ),
}  # fmt: skip


def levels_of(model: ModelChoice) -> tuple[str, ...] | None:
    """Return the levels of thinking that a model has, off included where it can do without; None: not known here."""
    if model.kind == "local":
        return ()
    return _looked_up(_LEVELS, model)


def cache_of(model: ModelChoice) -> tuple[str, ...] | None:
    """Return the lengths of time for which a model's provider keeps the beginning of a prompt when it is asked to.

    Empty: it may keep it by itself, and takes no order. None: not known here.
    """
    return () if model.kind == "local" else _looked_up(_TIERS, model)


def caches_on_request(model: ModelChoice) -> bool:
    """Whether the provider keeps the beginning of a prompt only when it is asked to."""
    return bool(cache_of(model)) or (model.provider == "openrouter" and model.name.startswith("google/gemini-"))


def has_fast_tier(model: ModelChoice) -> bool:
    """Whether its provider answers faster for more money, in a way that can be asked for."""
    return model.kind == "provider" and model.name.startswith(_FAST.get(model.provider, ()))


def _looked_up(table: dict[str, tuple[tuple[str, str], ...]], model: ModelChoice) -> tuple[str, ...] | None:
    if model.kind != "provider":
        return None
    rows = table.get(model.provider, ())
    return next((tuple(found.split()) for prefix, found in rows if model.name.startswith(prefix)), None)
