"""What a group of steps came to together: a text for the next step to read, or an array of what each item gave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subagents_nb.domain.plans.fanout import Item
from subagents_nb.domain.plans.placeholders import as_text
from subagents_nb.domain.plans.plan import FanOutItem
from subagents_nb.domain.runs.records import EndReason, StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.domain.values.schemas import validator_of
from subagents_nb.runner.steps.step_result import VALUE_BYTES
from subagents_nb.store.files.codec import lenient_json

_FAULTS = 8
_WORDS = {
    StepState.FAILED: "FAILED",
    StepState.SKIPPED: "SKIPPED",
    StepState.STOPPED: "STOPPED",
    StepState.REJECTED: "NOT ACCEPTED",
    StepState.PAUSED: "PAUSED",
}


class CollectProblem(ValueError):
    """What was collected can't be used."""

    def __init__(self, reason: EndReason, text: str) -> None:
        super().__init__(text)
        self.reason: EndReason = reason


def as_input(result: StepResult) -> str:
    """Return what a step came to as a later step is given it; a text that is not whole says so."""
    if result.has_value:
        return as_text(result.value)
    if result.text_file is None:
        return result.text
    return f"[Cut: only the first {len(result.text):,} characters of this answer are given]\n{result.text}"


def aggregate(results: Sequence[StepResult]) -> str:
    """Return the answers of a group under a heading each, with a word where one fell short."""
    parts = []
    for number, result in enumerate(results, start=1):
        name = f"{result.agent}, {result.label}" if result.label else result.agent
        word = "TIMED OUT" if result.reason == "timeout" else _WORDS.get(result.state, "")
        heading = f"=== Parallel task {number} ({name}) {word}".rstrip() + " ==="
        body = as_input(result)
        parts.append(f"{heading}\n{body or result.error or '(no output)'}")
    return "\n\n".join(parts)


def collected(
    fan_out: FanOutItem, items: Sequence[Item], results: Sequence[StepResult], *, run_dir: Path
) -> list[dict[str, Any]]:
    """Return one entry for each item, in their order.

    Raises:
        CollectProblem: it is too large, or does not fit the schema that was asked for.
    """
    value = [_entry(item, result, run_dir) for item, result in zip(items, results, strict=True)]
    size = len(lenient_json(value))
    if size > VALUE_BYTES:
        text = (
            f"What the fan-out collected has {size:,} bytes, more than the {VALUE_BYTES:,} that a result can hold; "
            "each step's own answer is kept. Let the steps answer in a schema, or in fewer words."
        )
        raise CollectProblem("output-limit", text)
    if fan_out.collect_schema is not None:
        faults = []
        for fault in validator_of(fan_out.collect_schema).iter_errors(value):
            where = ".".join(str(part) for part in fault.instance_path) or "the whole array"
            faults.append(f"{where}: {' '.join(fault.message.split())[:200]}")
            if len(faults) == _FAULTS:
                break
        if faults:
            raise CollectProblem("schema", f"What the fan-out collected does not fit its schema: {'; '.join(faults)}.")
    return value


def _entry(item: Item, result: StepResult, run_dir: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "key": item.key,
        "index": item.index,
        "item": item.value,
        "agent": result.agent,
        "step": result.index,
        "state": str(result.state),
    }
    if result.has_value:
        entry["value"] = result.value
    else:
        entry["text"] = as_input(result)
    if result.error is not None:
        entry["error"] = result.error
    if result.reason is not None:
        entry["reason"] = result.reason
    if result.saved is not None:
        kept = result.saved
        entry["output_path"] = str(run_dir / kept.path) if kept.place == "run" else kept.path
    return entry
