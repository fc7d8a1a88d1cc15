"""How one step's work becomes its result."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from subagents_nb.domain.plans.bounds import MAX_OUTPUT_CHARS as TEXT_CHARS
from subagents_nb.domain.plans.bounds import OutputBound
from subagents_nb.domain.runs.events import StepFailed, StepOutcome
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import StepEvent
from subagents_nb.runner.steps.causes import Cause
from subagents_nb.store.files.codec import lenient_json

VALUE_BYTES = 2 * 1024 * 1024


def ended_well(
    draft: StepResult, outcome: StepOutcome, keep: Callable[[str], Path | None], bound: OutputBound | None = None
) -> StepResult:
    """Return the result of a step that came to something; `keep` stores a text too long for a result, or the bound."""
    size = len(lenient_json(outcome.value)) if outcome.has_value else 0
    if size > VALUE_BYTES:
        text = f"The structured output has {size:,} bytes, more than the {VALUE_BYTES:,} that a result can hold."
        return _failed(draft, "output-limit", text).model_copy(update={"usage": outcome.usage})
    text, text_file = outcome.text, None
    head = text[:TEXT_CHARS] if bound is None else bound.head(text)
    if len(head) < len(text):
        try:
            kept = keep(text)
            text_file = str(kept) if kept is not None else None
        except OSError as error:  # no room for the whole is no reason to lose the head
            print(f"the whole answer was not stored: {error}", file=sys.stderr, flush=True)  # noqa: T201
        text = head
        if text_file is None:
            text += f"\n[Cut: the first {len(head):,} of {len(outcome.text):,} characters; the rest was not stored]"
    return draft.to(
        StepEvent.COMPLETE,
        text=text,
        text_file=text_file,
        has_value=outcome.has_value,
        value=outcome.value,
        usage=outcome.usage,
        model=outcome.model or draft.model,
    )


def ended_for(draft: StepResult, cause: Cause) -> StepResult:
    """Return the result of a step that was ended before its work was done."""
    return draft.to(StepEvent(cause.event), reason=cause.reason, error=cause.message)


def ended_with(draft: StepResult, error: BaseException) -> StepResult:
    """Return the result of a step whose work raised."""
    if isinstance(error, StepFailed):
        return _failed(draft, error.reason, error.message).model_copy(update={"usage": error.usage or draft.usage})
    traceback.print_exception(error)
    text = f"A fault of the runner itself: {type(error).__name__}: {error}. Its traceback is in runner.err."
    return _failed(draft, "internal", text)


def _failed(draft: StepResult, reason: str, text: str) -> StepResult:
    return draft.to(StepEvent.FAIL, reason=reason, error=text)
