"""Tools of MCP servers, as pydantic-ai has tools: by names that no tool of ours can have."""

from __future__ import annotations

from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext, Tool

from subagents_nb.runner.engines.engine import ServedTool, StepContext, ToolCallFailed
from subagents_nb.runner.engines.tools.tools import ToolContext


def served_tools(context: StepContext) -> list[Tool[ToolContext]]:
    """Return the tools that a step has of its servers."""
    return [_tool(one) for one in context.mcp.tools] if context.mcp is not None else []


def _tool(served: ServedTool) -> Tool[ToolContext]:
    async def call(ctx: RunContext[ToolContext], /, **args: Any) -> str:
        servers = ctx.deps.context.mcp
        if servers is None:
            raise ModelRetry("Its server is not there.")
        try:
            return await servers.call(served.name, args)
        except ToolCallFailed as error:
            raise ModelRetry(str(error)) from error

    return Tool.from_schema(call, served.name, served.description, served.schema, takes_ctx=True)
