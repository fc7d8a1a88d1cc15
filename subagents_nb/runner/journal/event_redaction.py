"""What engines report and come to, without the secrets of this process, before it reaches a file and then a page.

A model's own history keeps what it was told, else it could not go on from it; what is shown of that is redacted too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.plans.plan import LaunchPlan, choices_of
from subagents_nb.domain.runs.events import (
    EngineEvent,
    ModelAsked,
    Noticed,
    StepOutcome,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
)
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.texts.redaction import RedactedStream, Redactor
from subagents_nb.domain.values.characters import sayable, sayable_data

_PREVIEW_CHARS = 160
_Kind: TypeAlias = type[TextStreamed] | type[ThoughtStreamed]


class EventRedactor:
    """Takes the values of secret-looking variables, and of those that the plan's models name, out of what is told."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._names: set[str] = set()
        self._redact = Redactor({})
        self._streams: dict[int, dict[_Kind, RedactedStream]] = {}
        self.know(choices_of(plan.steps, plan.items))

    def know(self, models: Iterable[ModelChoice]) -> None:
        """Take in where the keys of these models are."""
        self._names.update(name for model in models for name in model.key_env)
        self._redact = Redactor(os.environ, self._names)

    def __call__(self, text: str) -> str:
        """Return a text without secrets, and without what can't be said in UTF-8."""
        return self._redact(sayable(text))

    def preview(self, text: str) -> str:
        """Return a text without secrets that may have been cut before: of one that was cut in two nothing is left."""
        kept = self(text)
        cut = kept.endswith("…")
        if not cut and len(text) < _PREVIEW_CHARS:
            return kept
        body = kept.removesuffix("…")
        return body[: self._redact.unfinished(body)] + "…" * cut

    def outcome(self, outcome: StepOutcome) -> StepOutcome:
        """Return what a step came to without secrets, in its text and in its value."""
        value: Any = self._redact.data(sayable_data(outcome.value)) if outcome.has_value else outcome.value
        return replace(outcome, text=self(outcome.text), value=value)

    def result(self, result: StepResult) -> StepResult:
        """Return how a step ended without secrets in what is said of it; its answer was cleaned as it came."""
        return result if result.error is None else result.model_copy(update={"error": self(result.error)})

    def events(self, step: int, event: EngineEvent) -> Sequence[EngineEvent]:
        """Return what may be told by now of what a step reported.

        The end of a streamed text is kept back only while it may be the beginning of a secret, and no longer than the
        answer lasts.
        """
        match event:
            case TextStreamed() | ThoughtStreamed():
                return self._streamed(step, event)
            case ToolStarted(_, name, args):
                return *self.rest(step), replace(event, name=self(name), args=self.preview(args))
            case ToolEnded(preview=preview, refused=refused):
                why = None if refused is None else self.preview(refused)
                return (replace(event, preview=self.preview(preview), refused=why),)
            case Noticed(code, text):
                return (Noticed(code, self.preview(text)),)
            case ModelAsked():
                return *self.rest(step), event
            case _:
                return (event,)

    def rest(self, step: int) -> Sequence[EngineEvent]:
        """Return what was kept back of a step's streams: their answer is over."""
        streams = self._streams.get(step, {})
        return [kind(kept) for kind, stream in streams.items() if (kept := stream.end())]

    def _streamed(self, step: int, event: TextStreamed | ThoughtStreamed) -> Sequence[EngineEvent]:
        streams, kind = self._streams.get(step), type(event)
        if streams is None:
            streams = self._streams[step] = {k: RedactedStream(self._redact) for k in (ThoughtStreamed, TextStreamed)}
        other = streams[ThoughtStreamed if kind is TextStreamed else TextStreamed]
        before = self.rest(step) if other.waits else ()
        shown = streams[kind].push(sayable(event.text))
        if shown is event.text and not before:
            return (event,)
        return (*before, kind(shown)) if shown else before
