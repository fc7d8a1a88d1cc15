"""What a step's tools need while it is carried out: its MCP servers started before, all that it started ended after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter


@asynccontextmanager
async def served(step: StepPlan, context: StepContext, keeper: ArtifactWriter | None) -> AsyncIterator[StepContext]:
    """Return the context of a step with what it was given; when this is left, its processes are gone.

    Raises:
        StepFailed: an MCP server can't be had.
    """
    whole = context
    try:
        if step.mcp:
            from subagents_nb.runner.mcp.step_servers import StepServers

            servers = StepServers(step, context, keeper)
            whole = replace(context, mcp=servers)
            await servers.start()
        yield whole
    finally:
        await asyncio.gather(*(one.close() for one in (whole.python, whole.mcp, whole.delegate) if one is not None))
        if whole.memory is not None:
            whole.memory.close()
