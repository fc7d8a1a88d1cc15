"""Whether the model that answered is the one that was asked, by names that providers and servers give."""

from __future__ import annotations

import pytest

from subagents_nb.domain.agents.model_names import aliases_of, sameness

SAME = [
    ("gpt-5-mini", "gpt-5-mini-2026-01-01"),
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("gpt-4", "gpt-4-0613"),
    ("gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
    ("o1-preview", "o1-preview-2024-09-12"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
    ("gemini-2.5-flash", "models/gemini-2.5-flash"),
    ("gemini-2.0-flash", "gemini-2.0-flash-001"),
    ("gemini-2.5-flash", "gemini-2.5-flash-preview-05-20"),
    ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("codestral-latest", "codestral-2501"),
    ("openai/gpt-5-mini", "openai/gpt-5-mini-2025-08-07"),
    ("anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929"),
    ("meta-llama/llama-3.3-70b-instruct:free", "meta-llama/llama-3.3-70b-instruct"),
    ("llama3.3", "llama3.3:latest"),
    ("Qwen/Qwen3-8B", "qwen3-8b"),
    ("gpt-5-mini", "azure/gpt-5-mini"),
    ("gpt-5-mini", ""),
]
OTHER = [
    ("gpt-5-mini", "gpt-4o-mini"),
    ("gpt-5", "gpt-5-mini-2025-08-07"),
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("gpt-4", "gpt-4-turbo-2024-04-09"),
    ("o3", "o3-mini"),
    ("gpt-5.6-sol", "gpt-5.6-terra"),
    ("claude-sonnet-4", "claude-sonnet-4-5-20250929"),
    ("claude-opus-5-5", "claude-sonnet-5-5"),
    ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("gemini-2.5-pro", "gemini-2.5-flash"),
    ("lab-7b", "/models/qwen.gguf"),  # which is only said: such a server has names of its own
]
UNCLEAR = [
    ("gemini-flash-latest", "gemini-3.8-flash"),  # pointers
    ("openrouter/auto", "mistralai/mistral-nemo"),
    ("gpt-4-turbo-preview", "gpt-4-0125-preview"),
    ("gemini-3-pro-preview", "gemini-3.1-pro-preview"),
    ("gemini-pro", "gemini-1.0-pro"),
    ("mistral-tiny", "open-mistral-7b"),
    ("mistral-small", "mistral-small-3.1"),
    ("gpt-5.6", "gpt-5.6-sol"),  # a family answers with its member
    ("gemini-3.1-pro-preview", "gemini-3.1-pro-preview-customtools"),
]


@pytest.mark.parametrize(
    ("asked", "answered", "found"),
    [(*pair, found) for pairs, found in ((SAME, "same"), (OTHER, "other"), (UNCLEAR, "unclear")) for pair in pairs],
)
def test_names_that_mean_the_same_are_told_from_names_that_cannot(asked: str, answered: str, found: str) -> None:
    assert sameness(asked, answered) == found


def test_an_alias_is_exact_and_makes_another_name_the_same() -> None:
    assert sameness("gpt-5-mini", "house-blend", ("house-blend",)) == "same"
    assert sameness("gpt-5-mini", "House-Blend", ("house-blend",)) == "other"


def test_aliases_are_found_however_the_model_is_written() -> None:
    table = {"openai:gpt-5": ("a",), "openai/gpt-5": ("b",), "gpt-5": ("a", "c"), "openai:gpt-5-mini": ("d",)}
    assert aliases_of(table, "openai", "gpt-5") == ("a", "b", "c")
    assert aliases_of(table, "groq", "gpt-4") == ()
