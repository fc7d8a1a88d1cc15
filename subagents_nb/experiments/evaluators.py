"""Evaluators of pydantic-evals as scorers, where that package is installed. It is imported when one is first called."""

from __future__ import annotations

import dataclasses
import importlib
import types
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from subagents_nb.above import above
from subagents_nb.launching import Run
from subagents_nb.launching.judging.judge_costs import finished
from subagents_nb.launching.judging.scorer_identity import OURS
from subagents_nb.launching.judging.scoring import Judged

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAILED = 2  # the code of a span that failed


def is_evaluator(scorer: Any) -> bool:
    """Say whether this is an evaluator, or a class of them."""
    return hasattr(scorer, "evaluate_sync") and hasattr(scorer, "get_default_evaluation_name")


class Evaluated:
    """An evaluator as a scorer: it gives numbers, or a mapping of names to them. A label is no score and left out."""

    def __init__(self, evaluator: Any, name: str | None = None) -> None:
        setattr(self, OURS, evaluator)
        self._evaluator = evaluator
        self.__name__ = name or str(evaluator.get_default_evaluation_name())

    def named(self, name: str) -> Evaluated:
        """Return the same scorer by another name."""
        return Evaluated(self._evaluator, name)

    def __call__(self, run: Run) -> Any:
        """Judge an ended run.

        Raises:
            Exception: whatever the evaluator raises.
        """
        result = finished(self._evaluator.evaluate(_context(run)))
        if isinstance(result, Mapping):
            plain = {str(name): _value(one) for name, one in result.items()}
            return {name: judged for name, judged in plain.items() if judged is not None}
        return _value(result)


def _value(result: Any) -> Judged | None:
    """Return what is judged, with the reason for it; None for a label."""
    kind = importlib.import_module("pydantic_evals.evaluators").EvaluationReason
    value, reason = (result.value, result.reason) if isinstance(result, kind) else (result, None)
    return None if isinstance(value, str) else Judged(value, reason or "")


def _context(run: Run) -> Any:
    """Return what an evaluator gets to see. Which fields there are is looked up: they differ between versions."""
    base = importlib.import_module("pydantic_evals.evaluators").EvaluatorContext
    plan, usage = run.plan, run.usage
    used = {"requests": usage.requests, "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    known = {
        "name": run.name,
        "inputs": plan.task or plan.steps[0].task,
        "metadata": dict(plan.experiment.params),
        "expected_output": None if run.case is None else run.case.expected,
        "output": run.output,
        "duration": run.status.elapsed_s,
        "attributes": {},
        "metrics": used if usage.cost_usd is None else {**used, "cost": usage.cost_usd},
    }
    fields = [field for field in dataclasses.fields(base) if field.init]
    arguments = {field.name: known.get(field.name) for field in fields if field.name in known or _is_required(field)}
    # A property, because most evaluators ask for no spans, and an empty tree would say that nothing was done.
    spans = {"span_tree": property(lambda _: _span_tree(run))}
    return types.new_class("RunContext", (base,), exec_body=lambda body: body.update(spans))(**arguments)


def _is_required(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _span_tree(run: Run) -> Any:
    """Return the run's steps, requests and tool calls as spans, with the names that OpenTelemetry has for them."""
    otel = importlib.import_module("pydantic_evals.otel")
    exporter = above("OtelExporter")(endpoint="", prompts=True)
    scope = exporter.contents(above("gather")(run))["resourceSpans"][0]["scopeSpans"][0]
    tree = otel.SpanTree()
    tree.add_spans([_node(otel.SpanNode, span) for span in scope["spans"]])
    return tree


def _node(kind: Any, span: Mapping[str, Any]) -> Any:
    parent = span.get("parentSpanId")
    known = {
        "name": span["name"],
        "trace_id": int(span["traceId"], 16),
        "span_id": int(span["spanId"], 16),
        "parent_span_id": None if parent is None else int(parent, 16),
        "start_timestamp": _time(span["startTimeUnixNano"]),
        "end_timestamp": _time(span["endTimeUnixNano"]),
        "attributes": {one["key"]: _plain(one["value"]) for one in span["attributes"]},
        "status": "error" if span["status"].get("code") == _FAILED else "unset",
    }
    names = {field.name for field in dataclasses.fields(kind) if field.init}
    return kind(**{name: value for name, value in known.items() if name in names})


def _time(nanoseconds: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(nanoseconds) // 1000)


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        parts: Sequence[Mapping[str, Any]] = content["values"]
        return [_plain(part) for part in parts]
    return content
