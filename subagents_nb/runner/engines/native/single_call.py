"""One tool call that no model asked for: through the same gate and to the same tools as a model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.gate import own_tools
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.native.gating import gating_of
from subagents_nb.runner.engines.opencalls import OpenCalls
from subagents_nb.runner.engines.tools.calls import ToolNotes, toolset_for
from subagents_nb.runner.engines.tools.served_tools import served_tools
from subagents_nb.runner.engines.tools.tools import ToolContext


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a model would be told of the call, and why it was refused, if it was."""

    text: str
    ok: bool
    refused: str | None = None


async def make_call(
    step: StepPlan, context: StepContext, name: str, args: dict[str, Any], *, call_id: str
) -> CallResult:
    """Make one call with the tools and the policy of a step.

    Raises:
        StepFailed: the call passed its limit.
    """
    notes = ToolNotes(OpenCalls({}), ToolMeter(None, context.report))
    names = own_tools(step, context)
    served = served_tools(context)
    toolset = toolset_for(names, notes, served)

    def say(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        called = len(messages) > 1
        return ModelResponse([TextPart("done") if called else ToolCallPart(name, args, tool_call_id=call_id)])

    agent = Agent(FunctionModel(say), deps_type=ToolContext, retries=1)
    result = await agent.run(
        "-",
        deps=ToolContext.at(context, step.policy),
        toolsets=[toolset] if toolset else None,
        capabilities=gating_of(step, context, names, notes),
    )
    known = {*names, *(one.name for one in served)}
    for message in result.all_messages():
        for part in message.parts:
            if getattr(part, "tool_call_id", None) == call_id and not isinstance(part, ToolCallPart):
                text = str(getattr(part, "content", ""))
                ok = isinstance(part, ToolReturnPart) and part.outcome == "success"
                return CallResult(text, ok, notes.refused.get(call_id) or (None if name in known else text))
    return CallResult("There was no answer.", ok=False)
