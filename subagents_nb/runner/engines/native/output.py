"""Structured output: how it is asked for, and the check that `pydantic_ai.StructuredDict` says it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal

import jsonschema_rs
from pydantic_ai import NativeOutput, PromptedOutput, StructuredDict, ToolOutput
from pydantic_ai.exceptions import ModelRetry

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.schemas import inlined, validator_of
from subagents_nb.runner.engines.clean_text import one_line

OutputMode = Literal["tool", "native", "prompted"]

_ERRORS_SHOWN = 8
_HEAD_CHARS = 200


def output_mode(step: StepPlan) -> OutputMode:
    """Return how this step's model is asked for structured output."""
    if step.model.kind == "local":
        return "native"  # the embedded model can't call tools; its server holds it to a schema
    return step.model.endpoint.output_mode if step.model.endpoint else "tool"


def output_spec(schema: dict[str, Any], name: str, mode: OutputMode) -> Any:
    """Return what pydantic-ai takes as output type for a raw schema."""
    kind = StructuredDict(inlined(schema), name=_safe_name(str(schema.get("title") or name)))
    match mode:
        case "tool":
            return ToolOutput(kind)
        case "native":
            return NativeOutput(kind)
        case "prompted":
            return PromptedOutput(kind)


class SchemaCheck:
    """Validate answers against the schema, and remember what was wrong with the last one."""

    def __init__(self, schema: dict[str, Any]) -> None:
        try:
            self._validator = validator_of(schema)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise StepFailed("setup", f"The output schema is not usable: {one_line(str(error))}") from error
        self.errors: tuple[str, ...] = ()
        self.last: str = ""
        self.passed = False

    def __call__(self, value: Any) -> Any:
        """Return the value if it fits.

        Raises:
            ModelRetry: it does not; the message lists the first errors for the model to correct.
        """
        self.errors = schema_errors(self._validator, value)
        self.last = json.dumps(value, ensure_ascii=False, default=str)
        self.passed = not self.errors
        if self.errors:
            raise ModelRetry("The answer does not fit the schema: " + "; ".join(self.errors))
        return value

    def failure(self, tries: int, redact: Callable[[str], str], *, head: str = "") -> StepFailed:
        """Return the failure of a step whose answers never fitted."""
        what = "; ".join(self.errors) or "it was not the JSON object that was asked for"
        shown = one_line(redact(self.last or head), _HEAD_CHARS) or "(nothing)"
        message = f"The model's answer did not fit the schema in {tries} tries: {one_line(redact(what), 600)}."
        return StepFailed("schema", f"{message} Its last answer began: {shown}")


def schema_errors(validator: Any, value: Any) -> tuple[str, ...]:
    """Return the first errors as `path: what`, paths dotted."""
    errors: list[str] = []
    for error in validator.iter_errors(value):
        path = ".".join(str(part) for part in error.instance_path) or "the whole answer"
        errors.append(f"{path}: {one_line(error.message, 200)}")
        if len(errors) == _ERRORS_SHOWN:
            break
    return tuple(errors)


def _safe_name(title: str) -> str:
    # Providers take it as an identifier.
    return re.sub(r"[^A-Za-z0-9_-]+", "_", title).strip("_")[:60] or "answer"
