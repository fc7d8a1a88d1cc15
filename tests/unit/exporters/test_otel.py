"""A run as a trace, and what a collector gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support import run_id

from subagents_nb import Run, export
from subagents_nb.domain.plans.request import Origin
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.values.usage import Usage
from subagents_nb.errors import RequestError
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.otel import OtelExporter

Record = Callable[..., Run]
Serve = Callable[[Callable[[str, str, bytes], tuple[int, Any]]], Any]


def spans_of(run: Run, **options: Any) -> list[dict[str, Any]]:
    found = OtelExporter(endpoint="http://x/v1/traces", **options).contents(gather(run))
    return list(found["resourceSpans"][0]["scopeSpans"][0]["spans"])


def facts(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_run_step_requests_and_tools_are_spans_below_one_another(record: Record) -> None:
    spans = spans_of(record())
    assert [span["name"] for span in spans] == [
        "invoke_workflow scout-1",
        "invoke_agent scout",
        "chat echo",
        "chat echo",
        "execute_tool read",
    ]
    root, step, *inner = spans
    assert "parentSpanId" not in root
    assert step["parentSpanId"] == root["spanId"]
    assert {span["parentSpanId"] for span in inner} == {step["spanId"]}
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16)


def test_a_tree_is_one_trace_and_each_run_stands_below_its_parent(record: Record) -> None:
    used = Usage(input_tokens=4, cost_usd=0.5)
    row = TreeRow(path="scout", run_id=run_id(2), agent="scout", state=RunState.COMPLETE, usage=used)
    lead = record(1, tree=(row,))
    child = record(2, plan={"origin": Origin(parent=lead.id, root=lead.id, path="scout")})
    top, below = spans_of(lead)[0], spans_of(child)
    assert {span["traceId"] for span in below} == {top["traceId"]}
    assert below[0]["parentSpanId"] == top["spanId"] and "parentSpanId" not in top
    assert facts(below[0])["subagents_nb.path"] == "scout"
    assert facts(top)["subagents_nb.metric.tree_input_tokens"] == 20.0
    assert facts(top)["subagents_nb.metric.tree_cost_usd"] == 0.75


def test_they_carry_the_names_of_the_conventions(record: Record) -> None:
    _, step, chat, _, tool = map(facts, spans_of(record()))
    assert step["gen_ai.agent.name"] == "scout" and step["gen_ai.operation.name"] == "invoke_agent"
    assert chat["gen_ai.provider.name"] == "scripted" and chat["gen_ai.request.model"] == "echo"
    assert (chat["gen_ai.response.model"], chat["gen_ai.usage.input_tokens"]) == ("m-1", "7")
    assert (tool["gen_ai.tool.name"], tool["gen_ai.tool.call.id"]) == ("read", "c1")


def test_they_have_the_times_that_they_had(record: Record) -> None:
    tool = spans_of(record())[4]
    assert int(tool["endTimeUnixNano"]) - int(tool["startTimeUnixNano"]) == 1_000_000_000
    assert tool["startTimeUnixNano"] == "1772366403000000000"


def test_spans_end_within_their_parents_whatever_was_noted_later(record: Record) -> None:
    whole = gather(record())
    earlier = whole.model_copy(update={"end": whole.steps[0].tools[0].start})
    found = OtelExporter(endpoint="http://x/v1/traces").contents(earlier)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    by_id = {span["spanId"]: span for span in found}
    assert len(found) == 5
    for span in found[1:]:
        assert int(span["endTimeUnixNano"]) <= int(by_id[span["parentSpanId"]]["endTimeUnixNano"])


def test_what_was_said_is_left_out_unless_it_is_asked_for(record: Record) -> None:
    run = record()
    assert "count the rows" not in json.dumps(spans_of(run))
    _, step, first, second, tool = map(facts, spans_of(run, prompts=True))
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "count the rows"}]}
    ]
    assert [m["role"] for m in json.loads(second["gen_ai.input.messages"])] == [
        "user",
        "assistant",
        "assistant",
        "tool",
    ]
    assert json.loads(second["gen_ai.output.messages"])[0]["parts"][0]["content"] == "three rows"
    assert json.loads(step["gen_ai.system_instructions"]) == [{"type": "text", "content": "be brief"}]
    assert (json.loads(tool["gen_ai.tool.call.arguments"]), tool["gen_ai.tool.call.result"]) == ({"path": "a"}, "x,y")


def test_a_failed_step_is_an_error_of_its_reason(record: Record) -> None:
    failed = StepResult(agent="scout", model="m", state=StepState.FAILED, reason="timeout", error="too late")
    root, step, *_ = spans_of(record(state=RunState.FAILED, reason="timeout", error="too late", steps=(failed,)))
    assert (root["status"], step["status"]) == ({"code": 2, "message": "too late"},) * 2
    assert facts(step)["error.type"] == "timeout"


def test_sent_again_it_is_the_same_trace_and_unchanged_it_is_not_sent(record: Record, serve: Serve) -> None:
    run = record()
    collector = serve(lambda *_: (200, {}))
    for _ in range(2):
        export(run, to="otel", endpoint=f"{collector.url}/v1/traces")
    run.score("accuracy", 0.5)
    export(run, to="otel", endpoint=f"{collector.url}/v1/traces")
    first, second = (json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"] for *_, body in collector.requests)
    assert [span["spanId"] for span in first] == [span["spanId"] for span in second]
    assert facts(second[0])["subagents_nb.score.accuracy"] == 0.5


def test_endpoint_and_headers_come_from_the_usual_variables(
    record: Record, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = serve(lambda *_: (200, {"partialSuccess": {"rejectedSpans": "2"}}))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url + "/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b,x-other=c")
    (sent,) = export(record(), to="otel")
    assert collector.requests[0][:2] == ("POST", "/v1/traces")
    assert (collector.headers[0]["x-key"], collector.headers[0]["x-other"]) == ("a b", "c")
    assert sent.link.notes == ("the collector rejected 2 spans",)


def test_without_a_collector_it_says_what_to_set(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with pytest.raises(RequestError, match="Set OTEL_EXPORTER_OTLP_ENDPOINT"):
        export(record(), to="otel")
