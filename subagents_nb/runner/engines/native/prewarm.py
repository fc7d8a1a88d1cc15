"""Throw-away runs, so that a forked runner finds everything imported and built.

One knocks at a closed port; the other is answered by a server inside this process, over one of OpenAI's two protocols,
with a tool call and a structured answer, and goes on from the session of the first. Only answered runs build what reads
an answer. No byte leaves the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import EngineEvent, StepFailed, StepOutcome
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES
from subagents_nb.runner.engines.session_file import SESSION_FILE

_SCHEMA: dict[str, Any] = {"type": "object", "title": "A", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_CALLS = (("list", '{"path": "."}'), ("final_result", '{"a": "b"}'))
_PATIENCE_S = 60.0  # the other side is ourselves; only the machine can be slow
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def prewarm(api: str) -> None:
    """Make the runs, the answered one over this one of OpenAI's protocols, and forget them.

    Raises:
        Exception: a run ended in another way than it must; the fork server would be built on sand.
    """
    with tempfile.TemporaryDirectory(prefix="subagents-nb-") as folder:
        asyncio.run(_knock(Path(folder)))
        asyncio.run(_answered(Path(folder), api))


def load_prices() -> None:
    """Read the prices of models, once for all runs."""
    response = ModelResponse(
        parts=[TextPart("")], model_name="gpt-5-mini", provider_name="openai", usage=RequestUsage(input_tokens=1)
    )
    with contextlib.suppress(LookupError, ValueError):
        response.cost()


async def _knock(place: Path) -> None:
    # Bound but not listening: nobody else can take the port while we knock.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        try:
            await _run(place, closed.getsockname()[1], "chat")
        except StepFailed as failure:
            if failure.reason != "connection":
                raise


async def _answered(place: Path, api: str) -> None:
    # An address in figures is not looked up, so no resolver thread is started.
    async with await asyncio.start_server(Peer(api).answer, "127.0.0.1", 0) as server:
        outcome = await _run(place, server.sockets[0].getsockname()[1], api, history=place / SESSION_FILE)
    if outcome.value != {"a": "b"}:
        raise RuntimeError(f"the rehearsal came to {outcome}")


async def _run(place: Path, port: int, api: str, *, history: Path | None = None) -> StepOutcome:
    endpoint = Endpoint.model_validate({"base_url": f"http://127.0.0.1:{port}/v1", "api": api})
    step = StepPlan(
        agent="rehearsal",
        agent_source="builtin",
        agent_digest="",
        task="-",
        system_prompt="-",
        model=ModelChoice(kind="endpoint", provider="rehearsal", name="m", origin="call", endpoint=endpoint),
        tools=("read", "list", "find", "grep", "write", "edit", "bash", "python", "ask"),
        output_schema=_SCHEMA,
    )
    context = StepContext(
        report=_forget, cwd=place, step_dir=place, store_home=place, environ={}, ask=_nobody, history=history
    )
    return await NativeEngine(request_s=_PATIENCE_S, patience=NO_RETRIES).run(step, context)


class Peer:
    """The other side of an answered run: says a word and calls a tool, then gives the structured answer."""

    def __init__(self, api: str) -> None:
        self._events = _chat_events if api == "chat" else _response_events
        self._calls = iter(_CALLS)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and stream the next answer."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        writer.write(_HEAD)
        for event in self._events(*next(self._calls)):
            name = f"event: {event['type']}\n" if "type" in event else ""
            writer.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _chat_events(tool: str, args: str) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], end: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}

    call = {"index": 0, "id": tool, "type": "function", "function": {"name": tool, "arguments": args}}
    yield chunk({"role": "assistant", "content": "a"})
    yield chunk({"content": " word"})
    yield chunk({"tool_calls": [call]})
    yield chunk({}, "tool_calls", usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})


def _response_events(tool: str, args: str) -> Iterator[dict[str, Any]]:
    def response(status: str, output: list[Any]) -> dict[str, Any]:
        return {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output,
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}  # fmt: skip

    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    part = {"type": "output_text", "text": "a word", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    call = {"type": "function_call", "id": f"f-{tool}", "call_id": tool, "name": tool, "arguments": args}
    where = {"item_id": "m", "output_index": 0, "content_index": 0}
    yield {"type": "response.created", "response": response("in_progress", [])}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}}
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    yield {"type": "response.output_text.delta", **where, "delta": "a word", "logprobs": []}
    yield {"type": "response.output_text.done", **where, "text": "a word", "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}
    yield {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}}
    yield {"type": "response.function_call_arguments.delta", "item_id": call["id"], "output_index": 1, "delta": args}
    yield {"type": "response.function_call_arguments.done", "item_id": call["id"], "output_index": 1, "arguments": args}
    yield {"type": "response.output_item.done", "output_index": 1, "item": call}
    yield {"type": "response.completed", "response": response("completed", [message, call])}


async def _nobody(text: str, choices: Sequence[str] = (), *, call_id: str = "") -> str:
    del choices, call_id
    return text


def _forget(_event: EngineEvent) -> None:
    return None
