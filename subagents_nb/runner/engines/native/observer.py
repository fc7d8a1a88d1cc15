"""Watch a pydantic-ai run: turn what it tells into our events, keep count, and notice answers that broke off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from subagents_nb.domain.policy.tool_names import shown_tool
from subagents_nb.domain.runs.events import (
    EngineEvent,
    ModelAsked,
    ModelNamed,
    StepFailed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from subagents_nb.domain.runs.finish import CutAnswer, Finish
from subagents_nb.domain.runs.records import Usage
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import Limits
from subagents_nb.runner.engines.native.mending import cut_of, end_of, mended
from subagents_nb.runner.engines.step_limits import may_not_ask
from subagents_nb.runner.engines.tools.calls import ToolNotes
from subagents_nb.runner.engines.tools.tools import ToolContext, args_preview

LONGEST_ANSWER = 4_000_000  # characters of one answer, with its thoughts and the arguments of its calls
_TOO_LONG = f"The model's answer grew beyond {LONGEST_ANSWER:,} characters, and was not read any further."


@dataclass
class Observer(AbstractCapability[ToolContext]):
    """One step's witness: hooks around the model's requests, and the handler of the event stream."""

    report: Callable[[EngineEvent], None]
    save: Callable[[Sequence[ModelMessage]], None]
    redact: Callable[[str], str]
    tool_names: frozenset[str]
    notes: ToolNotes
    price: Callable[[ModelResponse], float | None]
    limits: Limits
    judge: Callable[[str], None]  # takes the name that a provider says answered; raises if that is another model
    window: int  # how much the model can read; 0: not known
    closed: Callable[[], bool]  # whether the last stream came to its own last line
    own_limit: bool = False  # the output limit is ours, so an answer that reached it is one
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    last: ModelResponse | None = None
    cut: CutAnswer | None = None  # why the last response is no answer
    finish: Finish = Finish.STOP  # how it ended
    _wrote: bool = False  # some answer text was streamed, so the next piece starts a paragraph
    _output_calls: frozenset[int] = frozenset()

    # --- around the model's requests ---

    def may_ask(self) -> bool:
        """Say whether a request is left, by the limit that is in force now."""
        return self.usage.requests < self.limits.max_requests and self.limits.over_budget() is None

    async def before_model_request(
        self, ctx: RunContext[ToolContext], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Count the request; by now the results of the last turn's tools are in the history."""
        if not self.may_ask():
            raise may_not_ask(self.limits)
        self.usage = self.usage.model_copy(update={"requests": self.usage.requests + 1})
        if self.usage.requests > 1:
            self.save(ctx.messages)
        self.report(ModelAsked(self.usage.requests))
        return request_context

    async def after_model_request(
        self, ctx: RunContext[ToolContext], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Account for the response, and refuse one that is not whole."""
        del request_context
        self.last = response = mended(response, ctx.messages)
        self._account(response)
        name = one_line(response.model_name or "", 120)
        if name and name != self.model:
            self.model = name
            self.report(ModelNamed(self.model))
            self.judge(self.model)
        self.finish = end_of(response, closed=self.closed())
        self.cut = None if self.own_limit and self.finish is Finish.LIMIT else cut_of(response, self.finish)
        # What a provider could not read of its model is asked for again, as often as any answer that is none.
        if self.cut is not None and (self.finish is not Finish.MALFORMED or response.text or response.tool_calls):
            raise StepFailed(self.cut.reason, self.redact(self.cut.text))
        if any(call.tool_name in self.tool_names for call in response.tool_calls):
            # Tools take their time; the last turn is saved when the step ends.
            known = any(message is response for message in ctx.messages)
            self.save(ctx.messages if known else [*ctx.messages, response])
        return response

    def _account(self, response: ModelResponse) -> None:
        spent, so_far = response.usage, self.usage
        price = self.price(response)
        first = so_far.requests == 1
        cost = price if first else None if price is None or so_far.cost_usd is None else so_far.cost_usd + price
        self.usage = so_far.model_copy(
            update={
                "input_tokens": so_far.input_tokens + spent.input_tokens,
                "output_tokens": so_far.output_tokens + spent.output_tokens,
                "cache_read_tokens": so_far.cache_read_tokens + spent.cache_read_tokens,
                "cost_usd": cost,
            }
        )
        self.report(UsageChanged(self.usage, spent.input_tokens + spent.output_tokens, self.window))

    # --- the event stream ---

    async def watch(self, _ctx: RunContext[ToolContext], events: AsyncIterable[Any]) -> None:
        """Report the events of one turn; pydantic-ai calls this once for the response and once for its tools."""
        length = 0
        async for event in events:
            match event:
                case PartDeltaEvent() | PartStartEvent():
                    length += _length(event)
                    if length > LONGEST_ANSWER:
                        # No model writes so much. Kept, it would be copied with each piece that comes.
                        raise StepFailed("output-limit", _TOO_LONG)
                    self._delta(event) if isinstance(event, PartDeltaEvent) else self._part(event)
                case FunctionToolCallEvent():
                    self._tool_started(event.part)
                case FunctionToolResultEvent():
                    self._tool_ended(event.part)
                case _:
                    pass

    def _part(self, event: PartStartEvent) -> None:
        # The first piece of a part comes with its start, not as a delta.
        self._output_calls -= {event.index}
        match event.part:
            case TextPart(content=text):
                self._paragraph()
                self._text(text)
            case ThinkingPart(content=thought) if thought:
                self.report(ThoughtStreamed(thought))
            case ToolCallPart() as call if self._is_output(call.tool_name):
                self._output_calls |= {event.index}
                self._paragraph()
                self._text(call.args if isinstance(call.args, str) else _as_text(call.args))
            case _:
                pass

    def _delta(self, event: PartDeltaEvent) -> None:
        match event.delta:
            case TextPartDelta(content_delta=text):
                self._text(text)
            case ThinkingPartDelta(content_delta=thought) if thought:
                self.report(ThoughtStreamed(thought))
            case ToolCallPartDelta(args_delta=args) if event.index in self._output_calls and args:
                self._text(args if isinstance(args, str) else _as_text(args))
            case _:
                pass

    def _is_output(self, tool: str) -> bool:
        # pydantic-ai's own name for the tool that takes the structured answer.
        return tool.startswith("final_result") and tool not in self.tool_names

    def _paragraph(self) -> None:
        if self._wrote:
            self.report(TextStreamed("\n\n"))
            self._wrote = False

    def _text(self, text: str) -> None:
        if text:
            self._wrote = True
            self.report(TextStreamed(text))

    def _tool_started(self, call: ToolCallPart) -> None:
        self.usage = self.usage.model_copy(update={"tool_calls": self.usage.tool_calls + 1})
        self.notes.open.announce(call.tool_call_id)
        self.notes.meter.announce(call.tool_call_id)
        texts = {name: self.redact(value) for name, value in _args_of(call).items() if isinstance(value, str)}
        self.report(ToolStarted(call.tool_call_id, one_line(shown_tool(call.tool_name), 80), args_preview(texts)))

    def _tool_ended(self, result: ToolReturnPart) -> None:
        call_id, name = result.tool_call_id, result.tool_name
        self.notes.open.forget(call_id)
        self.notes.meter.forget(call_id)
        refused = self.notes.refused.pop(call_id, None)
        if refused is None and name not in self.tool_names:
            has = ", ".join(sorted(self.tool_names)) or "none"
            refused = f"{one_line(name, 80)!r} is not one of this step's tools (it has: {has})."
        text = result.content if isinstance(result.content, str) else _as_text(result.content)
        self.report(
            ToolEnded(
                call_id,
                ok=refused is None and result.outcome == "success",
                seconds=self.notes.seconds.pop(call_id, 0.0),
                preview=one_line(self.redact(text), 160),
                refused=None if refused is None else one_line(self.redact(refused), 300),
            )
        )


def _length(event: PartStartEvent | PartDeltaEvent) -> int:
    """Return how much text comes with an event: the first piece of a part with its start, and that may be all of it."""
    match event.part if isinstance(event, PartStartEvent) else event.delta:
        case TextPart(content=text) | ThinkingPart(content=text):
            return len(text)
        case TextPartDelta(content_delta=str(text)) | ThinkingPartDelta(content_delta=str(text)):
            return len(text)
        case ToolCallPart(args=str(text)) | ToolCallPartDelta(args_delta=str(text)):
            return len(text)
        case _:
            return 0


def _args_of(call: ToolCallPart) -> dict[str, Any]:
    if isinstance(call.args, dict):
        return call.args
    try:
        args = json.loads(call.args or "{}")
    except (ValueError, RecursionError):
        return {}
    return args if isinstance(args, dict) else {}


def _as_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
