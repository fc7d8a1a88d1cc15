"""From a choice of a model to a model, and what is missing when there is none."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.native.providers import address, open_model
from subagents_nb.runner.engines.tools.tools import args_preview


def opened(workshop: Any, text: str, **endpoints: Endpoint) -> Any:
    async def main() -> Any:
        choice = parse_model(text, origin="call", endpoints=endpoints)
        async with open_model(choice, workshop.context()) as model:
            return model

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("openai:gpt-5-mini", "OpenAIResponsesModel", "api.openai.com:443"),
        ("openrouter:openai/gpt-5-mini", "OpenRouterModel", "openrouter.ai:443"),
        ("deepseek:deepseek-chat", "OpenAIChatModel", "api.deepseek.com:443"),
        ("together:m", "OpenAIChatModel", "api.together.xyz:443"),
        ("fireworks:m", "OpenAIChatModel", "api.fireworks.ai:443"),
        ("cerebras:llama", "CerebrasModel", "api.cerebras.ai:443"),
        ("moonshotai:kimi", "OpenAIChatModel", "api.moonshot.ai:443"),
        ("ollama:qwen3", "OllamaModel", "localhost:11434"),
    ],
)
def test_a_provider_means_what_pydantic_ai_means_by_it(workshop: Any, text: str, kind: str, where: str) -> None:
    provider = text.partition(":")[0]
    workshop.environ[f"{provider.upper()}_API_KEY"] = "sk-12345678"

    model = opened(workshop, text)

    assert (type(model).__name__, address(model)) == (kind, where)


def test_the_environment_may_name_another_server(workshop: Any) -> None:
    workshop.environ.update(OPENAI_API_KEY="sk-12345678", OPENAI_BASE_URL="http://127.0.0.1:9/v1")

    assert address(opened(workshop, "openai:gpt-5-mini")) == "127.0.0.1:9"


@pytest.mark.parametrize(("api", "kind"), [("chat", OpenAIChatModel), ("responses", OpenAIResponsesModel)])
def test_an_endpoint_speaks_the_protocol_it_says(workshop: Any, api: str, kind: type[Any]) -> None:
    lab = Endpoint.model_validate({"base_url": "http://lab.example:8000/v1", "api": api})

    model = opened(workshop, "lab:mine", lab=lab)

    assert type(model) is kind and address(model) == "lab.example:8000"


@pytest.mark.parametrize(
    ("text", "named"),
    [("openai:gpt-5", "OPENAI_API_KEY"), ("google:gemini-2.5-flash", "GOOGLE_API_KEY or GEMINI_API_KEY")],
)
def test_a_missing_key_names_the_variables(workshop: Any, text: str, named: str) -> None:
    with pytest.raises(StepFailed, match=named) as caught:
        opened(workshop, text)
    assert caught.value.reason == "auth"


@pytest.mark.parametrize(
    ("text", "client"), [("anthropic:claude-sonnet-5-5", "anthropic"), ("google:gemini-2.5-flash", "google.genai")]
)
def test_a_missing_client_names_what_to_install(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, text: str, client: str
) -> None:
    extra = text.partition(":")[0]
    workshop.environ[f"{extra.upper()}_API_KEY"] = "sk-12345678"
    for name in [name for name in sys.modules if name == client or name.startswith(f"{client}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, client, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, f"pydantic_ai.providers.{extra}", raising=False)

    with pytest.raises(StepFailed) as caught:
        opened(workshop, text)
    assert caught.value.reason == "setup" and f'pip install "subagents-nb[{extra}]"' in caught.value.message


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({"content": "long", "path": "a.txt"}, "a.txt"),
        ({"pattern": "x+", "path": "src"}, "src  x+"),
        ({"timeout_seconds": 5, "command": "ls\n -l"}, "ls -l"),
        ({"at": "moon", "count": 3}, "moon"),
        ({"path": "y" * 300}, "y" * 160),
        ({}, ""),
    ],
)
def test_a_preview_shows_the_command_or_path_first(args: dict[str, Any], shown: str) -> None:
    assert args_preview(args) == shown
