"""The MCP servers of a step: those whose tools it has, as they are defined; each is started once, when it begins."""

from __future__ import annotations

import posixpath

from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.mcp_servers import (
    INSTALL,
    KIND,
    MISSING_EXTRA,
    AllowedFiles,
    McpServer,
    servers_named,
)
from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.policy.tool_names import MCP, mcp_tool, server_in
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.domain.values.faults import meant
from subagents_nb.domain.values.reasons import Reason, Reasons
from subagents_nb.planning.steps.plan_context import PlanContext


def plan_mcp(
    asked: Step,
    agent: AgentDefinition,
    tools: tuple[str, ...],
    model: ModelChoice | None,
    context: PlanContext,
    reasons: Reasons,
) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """Return the servers of a step, and the tools that are left to it.

    Of a server that is nowhere, the tools are taken away and said, unless the launch names them: as with tools of ours
    that nobody allows. One that is there and can't be used is a reason against it.
    """
    if model is not None and model.kind == "local":
        return (), tools  # it can't call any
    found: list[McpServer] = []
    off: set[str] = set()
    own = {one.name: one for one in agent.mcp_servers or ()}
    for name in servers_named(tools):
        server = own.get(name) or context.environment.mcp.servers.get(name)
        if server is None:
            known = context.environment.mcp
            named = servers_named(tool for tool in map(mcp_tool, asked.tools or ()) if tool)
            if name in named or name in known.problems or known.broken:
                reasons.append(_missing(name, own, context))
            else:
                off.add(name)
                context.note(f"Agent {agent.name} goes without mcp:{name}: {_missing(name, own, context)}.")
        elif server.disabled:
            off.add(name)
            context.note(f"Agent {agent.name} goes without MCP server {name}, which is disabled in {server.where}.")
        else:
            found.append(server)
            _check(server, context)
    if found and "mcp" in context.environment.missing_extras:
        context.start_problem(Reason(MISSING_EXTRA, advice=INSTALL))
    return tuple(found), tuple(one for one in tools if not (one.startswith(MCP) and server_in(one) in off))


def as_allowed(server: McpServer, folder: str | None, context: PlanContext) -> McpServer:
    """Return a server of the project with what the person allowed of it, for a step that works in a folder."""
    environment = context.environment
    item = next(iter(_brought(server, context)), None)
    if item is None:
        return server
    own = item.files.get(server.where) == sha256_text(server.text())  # else a file of this name is meant
    files = {path: sha for path, sha in item.files.items() if path != server.where or not own}
    below = posixpath.join(context.folder, folder or "")
    up = [".."] * len([part for part in below.split("/") if part])
    way = posixpath.normpath(posixpath.join(*up, environment.way_to_root))
    allowed = AllowedFiles(project=environment.project_root, way=way, files=files)
    return server.model_copy(update={"allowed": allowed})


def _brought(server: McpServer, context: PlanContext) -> list[Acting]:
    if server.source != "project":
        return []
    here = (KIND, server.name, server.where)
    return [item for item in context.environment.brought if (item.kind, item.name, item.where) == here]


def _missing(name: str, own: dict[str, McpServer], context: PlanContext) -> str:
    known = context.environment.mcp
    if name in known.problems:
        return known.problems[name]
    there = (*own, *known.servers)
    hint = meant(name, there) if there else "; none is defined in .mcp.json or in settings"
    return "; ".join((f"there is no MCP server {name!r}{hint}", *known.broken))


def _check(server: McpServer, context: PlanContext) -> None:
    environment = context.environment
    context.uses(_brought(server, context))
    for variable in server.wants:
        if variable not in environment.environ_names:
            context.start_problem(
                f"MCP server {server.name!r} ({server.where}) is given the variable {variable}, which is not set; "
                "set it in the environment of the kernel"
            )
    if server.notes:
        keys = ", ".join(server.notes)
        context.note(f"MCP server {server.name} sets what is not carried out here, and grants nothing: {keys}.")
