"""What a script of the deterministic twin acts on: it streams, hears, and keeps the count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import jsonschema_rs

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import (
    ModelAsked,
    ModelNamed,
    StepFailed,
    StepOutcome,
    TextStreamed,
    ThoughtStreamed,
    UsageChanged,
)
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.schemas import validator_of
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.scripted.instances import minimal_instance
from subagents_nb.runner.engines.scripted.scripted_history import Transcript
from subagents_nb.runner.engines.scripted.stub_tools import StubCalls
from subagents_nb.runner.engines.step_limits import may_not_ask

_TOKEN_CHARS = 4
_LOOK_S = 0.02


class Player:
    """One step of the twin, from its first request to its outcome."""

    def __init__(self, step: StepPlan, context: StepContext, transcript: Transcript) -> None:
        self.step = step
        self.context = context
        self.transcript = transcript
        self._counted = Usage(cost_usd=0.0)
        self._length = 0
        self._text: list[str] = []
        meter = ToolMeter(step.tool_budget, context.report)
        self.calls = StubCalls(step, context, transcript, self.count, meter, self._remind)
        self.value: tuple[Any] | None = None  # the structured answer, in a box of its own: it may be None

    @property
    def usage(self) -> Usage:
        """Return the count so far: a token is four characters, whatever the text."""
        written = self._counted.output_tokens + self._length // _TOKEN_CHARS
        return self._counted.model_copy(update={"output_tokens": written})

    @property
    def may_ask(self) -> bool:
        """Say whether a request is left, by the limit that is in force now."""
        limits = self.context.limits
        return self._counted.requests < limits.max_requests and limits.over_budget() is None

    def first_request(self) -> None:
        """Report what a model's first request would."""
        self._request([self.step.task])
        self.context.report(ModelNamed(self.step.model.label))

    # --- what comes from the person ---

    def steers(self) -> Sequence[str]:
        """Take what was said meanwhile; a request brings it, so without one left nothing is taken."""
        texts = self.context.inbox.steers() if self.may_ask else ()
        if texts:
            self._request(texts)
        return texts

    async def steer(self) -> str:
        """Wait until somebody steers, and return what was said."""
        while not (texts := self.steers()):
            if not self.may_ask:
                raise may_not_ask(self.context.limits)
            await asyncio.sleep(_LOOK_S)
        return "\n".join(texts)

    def more(self) -> Sequence[str]:
        """Begin another turn if somebody has more to say now that this one is over, and return that."""
        if not self.may_ask:
            return ()
        texts = (*self.context.inbox.steers(), *self.context.inbox.follow_ups())
        if texts:
            self._request(texts)
            self._text.clear()
            self.context.report(TextStreamed("\n\n"))
        return texts

    # --- what it says ---

    def text(self, text: str) -> None:
        """Stream a piece of the answer."""
        self._text.append(text)
        self._length += len(text)
        self.transcript.say(text)
        self.context.report(TextStreamed(text))
        self.context.report(UsageChanged(self.usage))

    def think(self, text: str) -> None:
        """Stream a piece of what comes before the answer."""
        self.transcript.think(text)
        self.context.report(ThoughtStreamed(text))

    def count(self, more: Usage) -> None:
        """Add to the usage."""
        self._counted = self._counted.plus(more.model_copy(update={"cost_usd": more.cost_usd or 0.0}))
        self.context.report(UsageChanged(self.usage))

    def _remind(self, texts: Sequence[str]) -> None:
        if texts and self.may_ask:
            self._request(texts)

    def _request(self, said: Sequence[str]) -> None:
        for text in said:
            self.transcript.add_prompt(text)
        tokens = sum(len(text) for text in said) // _TOKEN_CHARS
        self._counted = self._counted.plus(Usage(input_tokens=tokens, requests=1, cost_usd=0.0))
        self.context.report(ModelAsked(self._counted.requests))

    # --- what it came to ---

    def outcome(self) -> StepOutcome:
        """Return what the step came to; with a schema, its value is validated like a model's."""
        text = "".join(self._text)
        schema = self.step.output_schema
        if schema is None:
            if not text and self.value is not None:
                text = json.dumps(self.value[0], ensure_ascii=False)
            if not text:
                raise StepFailed("no-answer", "The script ended without an answer.")
            return StepOutcome(text=text, usage=self.usage, model=self.step.model.label)
        value = self._checked(schema)
        shown = json.dumps(value, ensure_ascii=False)
        return StepOutcome(text=shown, has_value=True, value=value, usage=self.usage, model=self.step.model.label)

    def _checked(self, schema: dict[str, Any]) -> Any:
        try:
            validator = validator_of(schema)
        except (jsonschema_rs.ValidationError, ValueError, jsonschema_rs.ReferencingError) as error:
            raise StepFailed("setup", f"The output schema is not usable: {one_line(str(error))}") from error
        has_value = self.value is not None
        value = self.value[0] if self.value is not None else minimal_instance(schema)
        first = next(iter(validator.iter_errors(value)), None)
        if first is None:
            return value
        where = ".".join(str(part) for part in first.instance_path) or "the whole value"
        what = f"{where}: {one_line(first.message, 200)}"
        if has_value:
            raise StepFailed("schema", f"The script's value does not fit the schema: {what}.")
        raise StepFailed("setup", f"No value could be made up for this schema ({what}); give one in a script.")
