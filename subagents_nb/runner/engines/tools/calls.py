"""Around each tool call of a model: refusals told from failures, its time taken, its limit kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool, WrapperToolset

from subagents_nb.domain.agents.agent import DELEGATE, KNOWN_TOOLS, REPLY
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.domain.values.characters import sayable, sayable_data
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.opencalls import CANCELLED, CallCancelled, CallTimedOut, OpenCalls
from subagents_nb.runner.engines.step_limits import limit_of, past_limit
from subagents_nb.runner.engines.tools.tools import ToolContext, tool_named


@dataclass(slots=True)
class ToolNotes:
    """What is known of calls by their id: which are open, and what the event stream has no place for."""

    open: OpenCalls
    meter: ToolMeter
    refused: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class GuardedToolset(WrapperToolset[ToolContext]):
    """Tell refusals from failures, time each call, and let no failed call use up a retry budget.

    pydantic-ai ends the whole run when one tool fails twice in a row, see pydantic/pydantic-ai#2671; a model that looks
    for a file in three places is at work. The request limit bounds it.
    """

    notes: ToolNotes

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[ToolContext], tool: ToolsetTool[ToolContext]
    ) -> Any:
        """Call the tool; a call that policy forbids is noted as refused.

        Raises:
            StepFailed: the call passed its limit.
        """
        call_id, context = ctx.tool_call_id or "", ctx.deps.context
        started = time.monotonic()
        spent = self.notes.meter.refusal(call_id, name)
        if spent is not None:
            self.notes.refused[call_id] = spent
            raise ToolFailed(f"Not allowed: {spent}")
        try:
            async with self.notes.open.at_work(call_id, limit_of(name, context.limits.tool_timeout_s)):
                return sayable_data(await super().call_tool(name, tool_args, ctx, tool))
        except CallCancelled as error:
            raise ToolFailed(CANCELLED) from error
        except CallTimedOut as error:
            failure = past_limit(name, error.seconds)
            # The run ends here, and the event stream with it.
            context.report(ToolEnded(call_id, ok=False, seconds=time.monotonic() - started, preview=failure.message))
            raise failure from error
        except ModelRetry as error:
            cause = error.__cause__
            # The harness refuses with a PermissionError of its own; the system's carries a number.
            if isinstance(cause, PermissionError) and cause.errno is None:
                self.notes.refused[call_id] = error.message
                raise ToolFailed(f"Not allowed: {sayable(error.message)}") from error
            raise ToolFailed(sayable(error.message)) from error
        except OSError as error:
            raise ToolFailed(error.strerror or type(error).__name__) from error
        finally:
            self.notes.seconds[call_id] = time.monotonic() - started


def toolset_for(
    names: Sequence[str], notes: ToolNotes, served: Sequence[Tool[ToolContext]] = ()
) -> GuardedToolset | None:
    """Return the tools of ours with these names, and those of servers; None when there are none.

    They work with the `ToolContext` of the run.
    """
    wanted = [name for name in (*KNOWN_TOOLS, DELEGATE, REPLY) if name in names]
    if not wanted and not served:
        return None
    return GuardedToolset(FunctionToolset([*map(tool_named, wanted), *served], id="workspace"), notes)
