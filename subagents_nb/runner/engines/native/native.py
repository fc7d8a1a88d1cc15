"""The engine that talks to language models, through pydantic-ai."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, cast

# Read at import time by pydantic-ai; a runner has no terminal to greet.
os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")

from pathlib import Path

from pydantic import ValidationError
from pydantic_ai import Agent, UsageLimits, capture_run_messages
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, repair_messages
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings

from subagents_nb.domain.agents.memory import KEEPING, LOOKING
from subagents_nb.domain.agents.skills import LOAD_TOOL
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import Noticed, StepFailed, StepOutcome
from subagents_nb.domain.runs.finish import Finish
from subagents_nb.domain.values.characters import sayable
from subagents_nb.runner.engines.clean_text import Redactor
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.gate import own_tools
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.native.failures import NO_ANSWER, failure_of
from subagents_nb.runner.engines.native.gating import gating_of
from subagents_nb.runner.engines.native.mending import told_before
from subagents_nb.runner.engines.native.model_answers import judge_of, left_out, request_settings, window_of
from subagents_nb.runner.engines.native.observer import Observer
from subagents_nb.runner.engines.native.output import SchemaCheck, output_mode, output_spec
from subagents_nb.runner.engines.native.provider_http import LastLine
from subagents_nb.runner.engines.native.providers import LOCAL_MAX_TOKENS, address, open_model
from subagents_nb.runner.engines.native.request_retries import Patient, RetryPolicy
from subagents_nb.runner.engines.native.steering import Steering
from subagents_nb.runner.engines.opencalls import OpenCalls
from subagents_nb.runner.engines.session_file import read_session, save_session
from subagents_nb.runner.engines.tools.calls import ToolNotes, toolset_for
from subagents_nb.runner.engines.tools.served_tools import served_tools
from subagents_nb.runner.engines.tools.tools import ToolContext
from subagents_nb.runner.processes.threads import in_thread

REQUEST_TIMEOUT_S = 600.0
# One name for all: pydantic-ai keeps what it builds for an agent by its name, and a forked runner inherits that.
AGENT_NAME = "subagent"
# pydantic-ai counts failed calls and may only be told how many are too many; ours are bounded by the requests.
_UNBOUNDED = 1_000_000


class NativeEngine:
    """Carry out a step with a language model. A model given here takes the place of the plan's, for tests."""

    def __init__(
        self, model: Model | None = None, *, request_s: float = REQUEST_TIMEOUT_S, patience: RetryPolicy | None = None
    ) -> None:
        self._model = model
        self._request_s = request_s
        self._patience = patience or RetryPolicy()

    async def run(self, step: StepPlan, context: StepContext) -> StepOutcome:
        """Carry the step out and return what it came to.

        Raises:
            StepFailed: the step ended without a result.
        """
        check = SchemaCheck(step.output_schema) if step.output_schema is not None else None
        history = await read_history(context.history)
        last = LastLine()
        async with nullcontext(self._model) if self._model else open_model(step.model, context, last) as model:
            return await self._converse(model, step, context, check, history, last)

    async def _converse(
        self,
        model: Model,
        step: StepPlan,
        context: StepContext,
        check: SchemaCheck | None,
        history: list[ModelMessage] | None,
        last: LastLine,
    ) -> StepOutcome:
        redact = Redactor(context.environ, step.model.key_env)
        notes = ToolNotes(OpenCalls(context.open_tools), ToolMeter(step.tool_budget, context.report))
        names = _tool_names(step, context)
        more = _more(step, context, notes)
        observer = _observer(step, context, redact, notes, (*names, *_named_by(step, context)), last, model)
        toolset = toolset_for(names, notes, served_tools(context))
        for notice in left_out(step, model, context.environ):
            context.report(notice)
        with capture_run_messages() as messages:
            try:
                result = await _agent(step, model, check).run(
                    sayable(step.task),
                    message_history=history,
                    deps=ToolContext.at(context, step.policy),
                    model_settings=self._settings(step, model),
                    usage_limits=UsageLimits(request_limit=None),  # ours may change while the step is at work
                    toolsets=[toolset] if toolset else None,
                    capabilities=[
                        *gating_of(step, context, names, notes),
                        observer,
                        Steering(context.inbox, observer.may_ask, notes.meter.reminders),
                        Patient(self._patience, seed=str(context.step_dir)),
                        *more,
                    ],
                    event_stream_handler=observer.watch,
                )
                return _outcome(result, observer, check, context)
            except Exception as error:
                failure = _schema_failure(error, step, check, observer, redact)
                failure = failure or failure_of(error, step, address(model), redact)
                if failure is None:
                    raise
                failure.usage = observer.usage
                raise failure from (None if failure is error else error)
            finally:
                _save(context, messages)

    def _settings(self, step: StepPlan, model: Model) -> ModelSettings:
        settings = ModelSettings(timeout=self._request_s, first_event_timeout=self._request_s, max_retries=0)
        if step.model.kind == "local":
            settings["max_tokens"] = LOCAL_MAX_TOKENS
            settings["temperature"] = step.temperature or 0.0
            return settings
        if step.temperature is not None:
            settings["temperature"] = step.temperature
        return cast(ModelSettings, {**settings, **request_settings(step, model)})


def _agent(step: StepPlan, model: Model, check: SchemaCheck | None) -> Agent[ToolContext, Any]:
    output: Any = str
    if step.output_schema is not None:
        output = output_spec(step.output_schema, step.schema_name or "answer", output_mode(step))
    agent: Agent[ToolContext, Any] = Agent(
        model,
        name=AGENT_NAME,
        instructions=sayable(step.system_prompt) or None,
        output_type=output,
        deps_type=ToolContext,
        retries={"output": step.output_retries, "tools": _UNBOUNDED},
    )
    if check is not None:
        agent.output_validator(check)
    return agent


def _tool_names(step: StepPlan, context: StepContext) -> tuple[str, ...]:
    if step.model.kind == "local" and step.tools:
        context.report(Noticed("no-tools", "The embedded model can't call tools, so this step runs without any."))
        return ()
    return own_tools(step, context)


def _more(step: StepPlan, context: StepContext, notes: ToolNotes) -> Sequence[AbstractCapability[ToolContext]]:
    """Return the capabilities that only some steps have; only these import what they need."""
    capabilities: list[AbstractCapability[ToolContext]] = []
    if step.skills:
        from subagents_nb.runner.engines.native.skill_loading import skill_capabilities

        capabilities += skill_capabilities(step, context)
    if context.memory is not None:
        from subagents_nb.runner.engines.native.notes import memory_capability

        capabilities += [memory] if (memory := memory_capability(context.memory, notes)) is not None else []
    return capabilities


def _named_by(step: StepPlan, context: StepContext) -> tuple[str, ...]:
    """Return the names of the tools of those."""
    memory = context.memory
    keeping = () if memory is None else LOOKING + KEEPING if memory.plan.writes else LOOKING
    of_servers = [one.name for one in context.mcp.tools] if context.mcp is not None else []
    return (*keeping, *((LOAD_TOOL,) if step.skills else ()), *of_servers)


def _observer(
    step: StepPlan,
    context: StepContext,
    redact: Redactor,
    notes: ToolNotes,
    names: Sequence[str],
    last: LastLine,
    model: Model,
) -> Observer:
    return Observer(
        report=context.report,
        save=lambda messages: _save(context, messages),
        redact=redact,
        tool_names=frozenset(names),
        notes=notes,
        price=_price_of(step),
        limits=context.limits,
        judge=judge_of(step, model, context.report),
        window=window_of(step, model, context.environ),
        closed=lambda: last.came,
        own_limit=step.model.kind == "local",
    )


def _outcome(
    result: AgentRunResult[Any], observer: Observer, check: SchemaCheck | None, context: StepContext
) -> StepOutcome:
    if check is not None:
        text = json.dumps(result.output, ensure_ascii=False)
        return StepOutcome(text=text, has_value=True, value=result.output, usage=observer.usage, model=observer.model)
    text = str(result.output)
    if not text.strip():
        raise StepFailed("no-answer", NO_ANSWER)
    if observer.finish is Finish.LIMIT:
        # Its limit is ours, and a small model rarely stops by itself: what it wrote is the answer.
        context.report(Noticed("cut", f"The embedded model's answer was cut at {LOCAL_MAX_TOKENS} tokens."))
    if observer.finish is Finish.UNSAID:
        context.report(Noticed("end-unsaid", "The model's server did not say why the answer ended; it may be cut."))
    return StepOutcome(text=text, usage=observer.usage, model=observer.model)


def _schema_failure(
    error: Exception, step: StepPlan, check: SchemaCheck | None, observer: Observer, redact: Redactor
) -> StepFailed | None:
    """Return the failure of a step that ran out of attempts at an answer; pydantic-ai has one error for both kinds."""
    if type(error) is not UnexpectedModelBehavior or "output retries" not in error.message:
        return None
    last, cut = observer.last, observer.cut
    if cut is not None:
        return StepFailed(cut.reason, redact(cut.text))
    if check is None:
        return StepFailed("no-answer", NO_ANSWER)
    head = "" if last is None else last.text or "".join(call.args_as_json_str() for call in last.tool_calls)
    return check.failure(step.output_retries + 1, redact, head=head)


def _price_of(step: StepPlan) -> Callable[[ModelResponse], float | None]:
    if step.model.kind == "local":
        return lambda _response: 0.0
    if step.model.kind == "endpoint":
        return lambda _response: None  # a server of the user's own: nobody here knows its price
    return _list_price


def _list_price(response: ModelResponse) -> float | None:
    if response.usage.cost is not None:
        cost = float(response.usage.cost)
        return cost if 0 <= cost < math.inf else None
    if response.usage.unmeasured_requests or not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None


def _save(context: StepContext, messages: Sequence[ModelMessage]) -> None:
    if not messages:
        return
    try:
        save_session(context.step_dir, ModelMessagesTypeAdapter.dump_json(list(messages)))
    except OSError as error:
        why = error.strerror or type(error).__name__
        context.report(Noticed("session-not-saved", f"The history of this step could not be saved: {why}."))


async def read_history(path: Path | None) -> list[ModelMessage] | None:
    """Return the messages of a session, fit to be resumed; None when there is nothing to resume.

    A run that was ended in the middle of its tools left calls without an answer, which no provider takes;
    pydantic-ai answers each with a note that it was interrupted.

    Raises:
        StepFailed: the session is missing or can't be read ("setup").
    """
    if path is None:
        return None
    return await in_thread(lambda: _messages(path))


def _messages(path: Path) -> list[ModelMessage]:
    content = read_session(path)
    try:
        return repair_messages(told_before(ModelMessagesTypeAdapter.validate_json(content)))
    except ValidationError as error:
        raise StepFailed("setup", "The session of the earlier run is damaged, so it can't be resumed.") from error
