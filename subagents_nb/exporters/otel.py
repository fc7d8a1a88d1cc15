"""Runs as OpenTelemetry traces, by the conventions for generative AI, to an OTLP endpoint over HTTP with JSON.

A stored run is replayed: a trace of the run (a workflow), its steps (agents), their requests and tool calls, with the
times they had. Trace and span ids follow from the run's id, so the same run sent again is the same trace. What was said
is left out unless `prompts=True`, as the conventions have it. No package of OpenTelemetry's is needed here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import unquote

from subagents_nb.domain.plans.experiments import number_or_word
from subagents_nb.domain.runs.messages import Message, Turn
from subagents_nb.domain.runs.states import StepState
from subagents_nb.exporters.http_client import Server, without_credentials
from subagents_nb.exporters.protocol import Exporter, Link
from subagents_nb.exporters.run_record import RunRecord, Span, StepRecord
from subagents_nb.version import __version__

_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _endpoint() -> str:
    if named := os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return named
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return f"{base.rstrip('/')}/v1/traces" if base else ""


@dataclass(frozen=True, kw_only=True)
class OtelExporter(Exporter):
    """One collector; `endpoint` is the whole address for traces, from OTEL_EXPORTER_OTLP_* if it is not given."""

    name: ClassVar[str] = "otel"
    endpoint: str = field(default_factory=_endpoint, repr=False)
    service: str = field(default_factory=lambda: os.environ.get("OTEL_SERVICE_NAME") or "subagents-nb")
    prompts: bool = False

    @property
    def target(self) -> str:
        """Return the address."""
        return without_credentials(self.endpoint)

    def available(self) -> str | None:
        """Return why there is no collector to send to."""
        if not self.endpoint:
            return "no collector is named. Set OTEL_EXPORTER_OTLP_ENDPOINT, or give endpoint='http://…/v1/traces'."
        return None if self.endpoint.startswith(("http://", "https://")) else "only OTLP over HTTP is spoken"

    def contents(self, record: RunRecord) -> dict[str, Any]:
        """Return the trace as an OTLP request."""
        resource = {"service.name": self.service, "service.version": __version__}
        spans = list(_spans(record, prompts=self.prompts))
        scope = {"name": "subagents_nb", "version": __version__}
        scoped = [{"scope": scope, "spans": spans}]
        return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": scoped}]}

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        """Send the trace."""
        server = Server(
            self.endpoint,
            headers={"Content-Type": "application/json", **_headers()},
            certificates=os.environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE"),
        )
        try:
            answer = server.ask("POST", "", content=json.dumps(contents, allow_nan=False).encode())
        finally:
            server.close()
        return Link(target=self.target, remote_id=_trace_of(record), notes=_rejected(answer.content))


def trace_id(run_id: str) -> str:
    """Return the id of a run's trace."""
    return hashlib.sha256(f"trace {run_id}".encode()).hexdigest()[:32]


def _trace_of(record: RunRecord) -> str:
    """Return the trace that a run stands in: that of the root of its tree."""
    return trace_id(record.origin.root or record.run_id)


def _span_id(run_id: str, *place: object) -> str:
    return hashlib.sha256(" ".join(map(str, ("span", run_id, *place))).encode()).hexdigest()[:16]


def _spans(record: RunRecord, *, prompts: bool) -> Iterator[dict[str, Any]]:
    root = _span_id(record.run_id)
    facts = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": record.name,
        "gen_ai.conversation.id": record.run_id,
        **{f"subagents_nb.{name}": value for name, value in record.labels().items()},
        **{f"subagents_nb.param.{name}": value for name, value in record.params().items()},
        **{f"subagents_nb.metric.{name}": value for name, value in record.metrics().items()},
        **{
            f"subagents_nb.score.{s.name}{'/' + s.case if s.case else ''}": number_or_word(s.number)
            for s in record.scores
        },
    }
    failed = None if record.well else (record.reason or str(record.state), record.error)
    above = _span_id(record.origin.parent) if record.origin.parent is not None else None
    yield _span(record, root, above, f"invoke_workflow {record.name}", record.start, record.end, facts, failed=failed)
    for step in record.steps:
        if step.result.state is not StepState.SKIPPED:
            yield from _step(record, step, root, prompts=prompts)


def _step(record: RunRecord, step: StepRecord, parent: str, *, prompts: bool) -> Iterator[dict[str, Any]]:
    result, plan = step.result, step.plan
    me = _span_id(record.run_id, result.index)
    asked = {
        "gen_ai.provider.name": plan.model.provider if plan is not None else "",
        "gen_ai.request.model": plan.model.name if plan is not None else result.model,
        "gen_ai.request.temperature": plan.temperature if plan is not None else None,
        "gen_ai.conversation.id": record.run_id,
    }
    usage = result.usage
    facts = asked | {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": result.agent,
        "gen_ai.response.model": result.model,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "subagents_nb.step": result.index,
        "subagents_nb.cost_usd": usage.cost_usd,
    }
    failed = None
    if result.state not in (StepState.COMPLETE, StepState.PARTIAL):
        failed = (result.reason or str(result.state), result.error)
    if prompts:
        facts |= _messages_until(step.session.messages)
    # What is noted a moment after its parent ended is still a part of it.
    ended = min(step.end, record.end, key=datetime.fromisoformat)
    yield _span(record, me, parent, f"invoke_agent {result.agent}", step.start, ended, facts, failed=failed)
    for number, (request, turn) in enumerate(step.exchanges()):
        facts = asked | {"gen_ai.operation.name": "chat"} | (_answered(turn) if turn is not None else {})
        if prompts and turn is not None:
            facts |= _messages_until(step.session.messages, turn.number)
        name = f"chat {asked['gen_ai.request.model']}"
        span_id = _span_id(record.run_id, result.index, "request", number)
        until = min(request.end, ended, key=datetime.fromisoformat)
        yield _span(record, span_id, me, name, request.start, until, facts, kind=_CLIENT)
    for number, tool in enumerate(step.tools):
        until = min(tool.end, ended, key=datetime.fromisoformat)
        yield _tool(record, step, tool.model_copy(update={"end": until}), number, me, prompts=prompts)


def _tool(
    record: RunRecord, step: StepRecord, tool: Span, number: int, parent: str, *, prompts: bool
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.call.id": tool.call_id,
        "gen_ai.tool.type": "function",
    }
    if prompts and tool.call_id:
        for message in step.session.messages:
            if message.call_id == tool.call_id:
                side = {"call": "gen_ai.tool.call.arguments", "result": "gen_ai.tool.call.result"}.get(message.role)
                facts |= {side: message.text} if side is not None else {}
    failed = None if tool.ok else ("refused" if tool.refused is not None else "tool_error", None)
    span_id = _span_id(record.run_id, step.result.index, "tool", number)
    return _span(record, span_id, parent, f"execute_tool {tool.name}", tool.start, tool.end, facts, failed=failed)


def _answered(turn: Turn) -> dict[str, Any]:
    reason = turn.finish_reason
    return {
        "gen_ai.response.model": turn.model,
        "gen_ai.response.finish_reasons": [reason] if reason else None,
        "gen_ai.usage.input_tokens": turn.usage.input_tokens,
        "gen_ai.usage.output_tokens": turn.usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": turn.usage.cache_read_tokens or None,
    }


def _messages_until(messages: Iterable[Message], turn: int | None = None) -> dict[str, str]:
    """Return what was said up to a response, and in it; of the whole step without one."""
    system: list[Any] = []
    texts: list[Any] = []
    gave: list[Any] = []
    for message in messages:
        if message.role == "system":
            system.append({"type": "text", "content": message.text})
        elif turn is not None and message.turn > turn:
            break
        elif message.from_model and (turn is None or message.turn == turn):
            gave.append({"role": "assistant", "parts": [_part(message)], "finish_reason": "stop"})
        else:
            role = "assistant" if message.from_model else "tool" if message.role == "result" else "user"
            texts.append({"role": role, "parts": [_part(message)]})
    sides = {"gen_ai.system_instructions": system, "gen_ai.input.messages": texts, "gen_ai.output.messages": gave}
    return {name: json.dumps(side, ensure_ascii=False) for name, side in sides.items() if side}


def _part(message: Message) -> dict[str, Any]:
    match message.role:
        case "call":
            return {"type": "tool_call", "id": message.call_id, "name": message.tool, "arguments": message.args}
        case "result":
            return {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        case "thought":
            return {"type": "reasoning", "content": message.text}
        case _:
            return {"type": "text", "content": message.text}


def _span(
    record: RunRecord,
    span_id: str,
    parent: str | None,
    name: str,
    start: str,
    end: str,
    facts: Mapping[str, Any],
    *,
    kind: int = _INTERNAL,
    failed: tuple[str, str | None] | None = None,
) -> dict[str, Any]:
    span: dict[str, Any] = {
        "traceId": _trace_of(record),
        "spanId": span_id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nanoseconds(start),
        "endTimeUnixNano": _nanoseconds(end),
        "attributes": _attributes({**facts, "error.type": failed[0] if failed is not None else None}),
        "status": {"code": _ERROR, "message": failed[1] or failed[0]} if failed is not None else {},
    }
    return {**span, "parentSpanId": parent} if parent is not None else span


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in facts.items() if value not in (None, "", [])]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(one) for one in value]}}
        case _:
            return {"stringValue": str(value)}


def _nanoseconds(at: str) -> str:
    return str((datetime.fromisoformat(at) - _EPOCH) // timedelta(microseconds=1) * 1000)


def _headers() -> dict[str, str]:
    """Return the headers of OTEL_EXPORTER_OTLP_(TRACES_)HEADERS: `name=value,name=value`, percent-encoded."""
    named = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    pairs = (pair.partition("=") for pair in named.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _rejected(answer: bytes) -> tuple[str, ...]:
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess") or {}
        count = int(partial.get("rejectedSpans") or 0)
    except (ValueError, AttributeError, TypeError):
        return ()
    return (f"the collector rejected {count} spans",) if count else ()
