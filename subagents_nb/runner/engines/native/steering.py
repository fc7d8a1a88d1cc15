"""Bring what was said to a live run to its model: before the next request, or when the turn is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic_ai import ModelRequestNode
from pydantic_ai.capabilities import AbstractCapability, AgentNode, NodeResult
from pydantic_ai.tools import RunContext
from pydantic_graph import End

from subagents_nb.domain.values.characters import sayable
from subagents_nb.runner.engines.engine import Inbox
from subagents_nb.runner.engines.tools.tools import ToolContext


@dataclass
class Steering(AbstractCapability[ToolContext]):
    """Take messages from the inbox as late as may be, and none when no request is left to deliver them with."""

    inbox: Inbox
    may_ask: Callable[[], bool]
    reminders: Callable[[], Sequence[str]] = tuple  # of our own; they never make a turn that is over go on

    async def before_node_run(
        self, ctx: RunContext[ToolContext], *, node: AgentNode[ToolContext]
    ) -> AgentNode[ToolContext]:
        """Put what came before the request that is about to go out."""
        if isinstance(node, ModelRequestNode) and self.may_ask():
            for text in (*self.reminders(), *self.inbox.steers()):
                ctx.enqueue(sayable(text))
        return node

    async def after_node_run(
        self, ctx: RunContext[ToolContext], *, node: AgentNode[ToolContext], result: NodeResult[ToolContext]
    ) -> NodeResult[ToolContext]:
        """Let a turn that is over go on when somebody has more to say; pydantic-ai turns the end into a request."""
        del node
        if isinstance(result, End) and self.may_ask():
            for text in (*self.inbox.steers(), *self.inbox.follow_ups()):
                ctx.enqueue(sayable(text))
        return result
