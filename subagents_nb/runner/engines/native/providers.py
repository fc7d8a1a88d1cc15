"""From the plan's choice of a model to a pydantic-ai model. A provider's client is imported only when it is chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from subagents_nb.domain.agents.models import PROVIDER_NAMES, ModelChoice, base_url_env, extra_for
from subagents_nb.domain.runs.events import ModelLoading, StepFailed
from subagents_nb.errors import SubagentsError
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.native.provider_http import LastLine, open_client
from subagents_nb.runner.processes.threads import in_thread

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model

LOCAL_MAX_TOKENS = 512
_OLLAMA = "http://localhost:11434/v1"
# Providers whose SDK takes our HTTP client; the others' SDKs make their own.
_OUR_CLIENT = PROVIDER_NAMES - {"groq", "mistral", "local", "scripted"}


@asynccontextmanager
async def open_model(choice: ModelChoice, context: StepContext, last: LastLine | None = None) -> AsyncIterator[Model]:
    """Give the model of a step, with its connections, which are closed at the end; `last` is told of its streams.

    Raises:
        StepFailed: its key is missing ("auth"), or its client or server is ("setup").
    """
    key = _key(choice, context.environ)
    async with open_client(LastLine() if last is None else last) as client:
        if choice.kind == "local":
            yield await _local(choice, context, client)
        elif choice.kind == "provider":
            yield _provider(choice, key, context.environ, client)
        elif choice.endpoint is not None:
            endpoint = choice.endpoint
            yield _openai(endpoint.base_url, choice.name, key or "none", client, api=endpoint.api)
        else:
            raise StepFailed("setup", f"The plan names the endpoint {choice.provider!r} without its address.")


def address(model: Any) -> str:
    """Return host and port of a model's server for an error message, or the model's name when it has no address."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(str(model.base_url))
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except (AttributeError, ValueError):
        host, port = None, 0
    return f"{host}:{port}" if host else str(getattr(model, "model_name", "the model's server"))


def _key(choice: ModelChoice, environ: Mapping[str, str]) -> str | None:
    for name in choice.key_env:
        if environ.get(name):
            return environ[name]
    if choice.key_env:
        names = " or ".join(choice.key_env)
        raise StepFailed("auth", f"The model {choice.label} needs a key: set {names} before the kernel starts.")
    return None


def _provider(choice: ModelChoice, key: str | None, environ: Mapping[str, str], client: AsyncClient) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider_class

    def build(name: str) -> Provider[Any]:
        kind: Any = infer_provider_class(name)
        options: dict[str, Any] = {"api_key": key} if key else {}
        base_url = environ.get(base_url_env(name)) or (_OLLAMA if name == "ollama" else None)
        if base_url:
            options["base_url"] = base_url
        if name in _OUR_CLIENT:
            options["http_client"] = client
        provider: Provider[Any] = kind(**options)
        return provider

    try:
        return infer_model(choice.label, provider_factory=build)
    except ImportError as error:
        extra = extra_for(choice)
        how = f'pip install "subagents-nb[{extra}]"' if extra else one_line(str(error))
        raise StepFailed("setup", f"The client for {choice.provider} is not installed. Install it: {how}") from error
    except (UserError, ValueError) as error:
        raise StepFailed("setup", f"The model {choice.label} can't be used: {one_line(str(error))}") from error


def _openai(base_url: str, name: str, key: str, client: AsyncClient, *, api: str = "chat") -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=base_url, api_key=key, http_client=client)
    if api == "responses":
        return OpenAIResponsesModel(name, provider=provider)
    return OpenAIChatModel(name, provider=provider)


async def _local(choice: ModelChoice, context: StepContext, client: AsyncClient) -> Model:
    from subagents_nb import local_model

    try:
        # It may fetch the weights and start a server: seconds, at the first use.
        context.report(ModelLoading())
        server = await in_thread(lambda: local_model.ensure(context.store_home))
    except (SubagentsError, ImportError, OSError) as error:
        raise StepFailed("setup", f"The embedded model is not available: {one_line(str(error))}") from error
    return _openai(server.base_url, choice.name, server.api_key or "none", client)


__all__ = ["LOCAL_MAX_TOKENS", "address", "open_model"]
