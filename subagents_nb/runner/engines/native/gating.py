"""The gate, at the one place where pydantic-ai carries out any tool: ours, a capability's and a server's.

`get_wrapper_toolset` would be too far in: what pydantic-ai adds itself, as `load_capability`, never comes by there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import RunContext, ToolDefinition

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.values.characters import sayable
from subagents_nb.runner.engines.clean_text import one_line
from subagents_nb.runner.engines.engine import StepContext, judged_place
from subagents_nb.runner.engines.gate import CallGate, NotAllowed, gate_of
from subagents_nb.runner.engines.opencalls import CANCELLED, CallCancelled
from subagents_nb.runner.engines.tools.calls import ToolNotes
from subagents_nb.runner.engines.tools.tools import ToolContext


@dataclass
class Gating(AbstractCapability[ToolContext]):
    """Let a call through, with the arguments it was allowed with, or tell the model why not."""

    gate: CallGate
    notes: ToolNotes

    async def wrap_tool_execute(
        self,
        ctx: RunContext[ToolContext],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        """Carry the call out if it may be."""
        del ctx
        call_id = call.tool_call_id
        try:
            passed = await self._passed(call, tool_def, args)
        except NotAllowed as error:
            self.notes.refused[call_id] = error.why
            raise ToolFailed(f"Not allowed: {sayable(error.why)}") from error
        except CallCancelled as error:
            raise ToolFailed(CANCELLED) from error
        token = judged_place.set(self.gate.places.pop(call_id, None))
        try:
            result = await handler(passed)
        finally:
            judged_place.reset(token)
        if passed is args or not isinstance(result, str):
            return result
        return f"[The person changed the arguments of this call.]\n{result}"

    async def _passed(self, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]) -> dict[str, Any]:
        call_id = call.tool_call_id
        # A call that waits for the person can be ended like one that is at work.
        async with self.notes.open.at_work(call_id, None):
            passed = await self.gate.passed(call.tool_name, args, call_id=call_id)
        if passed is not args and (why := _misfit(tool_def.parameters_json_schema, passed)):
            raise NotAllowed(f"the person changed its arguments, and they don't fit: {one_line(why, 200)}.")
        return passed


def _misfit(schema: dict[str, Any], args: dict[str, Any]) -> str:
    """Return why arguments don't fit a tool, empty if they do.

    A server may say anything of its tool: where that is no schema, or refers to what lies elsewhere, it is for the
    server to judge.
    """
    import jsonschema_rs

    from subagents_nb.domain.values.schemas import validator_of

    try:
        error = next(validator_of(schema).iter_errors(args), None)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return ""
    return "" if error is None else error.message


def gating_of(
    step: StepPlan, context: StepContext, names: Sequence[str], notes: ToolNotes
) -> list[AbstractCapability[ToolContext]]:
    """Return the gate, to stand before everything else that has to do with tools; none where the plan limits no call.

    `names` are the tools of ours that the step has.
    """
    gate = gate_of(step, context, names)
    return [] if gate is None else [Gating(gate, notes)]
