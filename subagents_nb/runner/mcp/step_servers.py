"""The MCP servers of one step, and those of their tools that it has."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_types import Tool

from subagents_nb.domain.agents.mcp_servers import McpServer, secrets_of
from subagents_nb.domain.mcp.offered import McpOffer, difference, text_of_tool, what_changed
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.policy.permissions import PART_CHARS, PartShown, PermissionRequest
from subagents_nb.domain.policy.tool_names import MCP, is_server, server_in, tool_of_server
from subagents_nb.domain.runs.events import Noticed, ServersSeen, StepFailed
from subagents_nb.domain.values.characters import sayable
from subagents_nb.runner.engines.clean_text import Redactor, one_line
from subagents_nb.runner.engines.engine import ServedTool, StepContext, ToolCallFailed
from subagents_nb.runner.mcp.connection import CallFailed, Connection, McpLimits
from subagents_nb.runner.mcp.tool_answers import Answers, hints_of
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store.clock import utc_now
from subagents_nb.store.server_offers import ServerOffers

_MODEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")  # what providers take for the name of a tool
_TEXT_CHARS, _SCHEMA_CHARS, _MOST_TOOLS = 10_000, 50_000, 200
_TOLD_TOOLS, _NAMES_CHARS = 11, 2_000  # a request shows twelve parts, of which one counts the rest


class StepServers:
    """Started together when the step begins; ended together with it."""

    def __init__(
        self,
        step: StepPlan,
        context: StepContext,
        keeper: ArtifactWriter | None,
        *,
        limits: McpLimits | None = None,
    ) -> None:
        self._step = step
        self._context = context
        self._answers = Answers(step.index, keeper, context.report)
        self._redact = {one.name: self._redactor(one) for one in step.mcp}
        self._limits = limits or McpLimits()
        self._open = {one.name: self._connection(one) for one in step.mcp}
        self._tools: dict[str, ServedTool] = {}
        self._told: set[str] = set()
        self._texts: dict[str, dict[str, str]] = {}  # by server and tool: all that is said of it, without secrets

    @property
    def tools(self) -> tuple[ServedTool, ...]:
        """Return the tools that the step has of them."""
        return tuple(self._tools.values())

    async def start(self) -> None:
        """Start all of them, side by side.

        Raises:
            StepFailed: one is not there, or lacks a tool that the step was given.
        """
        self._context.reads.untracked("it used tools of MCP servers")
        listed = await asyncio.gather(*(one.connect() for one in self._open.values()), return_exceptions=True)
        failed = [found for found in listed if isinstance(found, BaseException)]
        if failed:
            raise failed[0]
        found = {name: tools for name, tools in zip(self._open, listed, strict=True) if isinstance(tools, tuple)}
        for name, tools in found.items():
            self._take(name, tools)
        offers = {name: self._offer(name, tools) for name, tools in found.items()}
        self._context.report(ServersSeen(tuple(one.seen for one in offers.values())))
        for name, offer in offers.items():
            await self._agreed(self._open[name].server, offer)

    async def _agreed(self, server: McpServer, offer: McpOffer) -> None:
        """Go on if a server offers what it offered before, or the person says that it may offer something else.

        What it says of its tools is told to the model, so this comes before the first request.
        """
        kept = ServerOffers(self._context.store_home)
        before = kept.last(server)
        changed = what_changed(before, offer) if before is not None else ""
        if before is not None and changed:
            await self._ask(server, changed, before, offer)
        if changed or before is None or before.texts != offer.texts:
            kept.keep(server, offer)

    async def _ask(self, server: McpServer, changed: str, before: McpOffer, now: McpOffer) -> None:
        why = f"its tools are others than on {before.seen_at[:10]} ({changed})"
        lead = f"MCP server {server.name!r} was not used: {why}"
        permit = self._context.permit
        if permit is None:
            raise StepFailed("setup", f"{lead}, and nobody can be asked here. Launch it where you are, and look.")
        parts = _parts_shown(before, now, self._texts[server.name])
        answer = await permit(PermissionRequest(tool=f"MCP server {server.name}", reason=why, parts=parts))
        if answer.decision not in ("once", "run"):
            said = "nobody answered" if answer.decision == "unattended" else f"the person said no {answer.text}".strip()
            raise StepFailed("setup", f"{lead}, and {said}.")

    async def call(self, name: str, args: dict[str, Any]) -> str:
        """Call a tool by the name that the model knows; return what it is told.

        Raises:
            ToolCallFailed: the server says that it failed, or does not answer.
        """
        tool = self._tools[name]
        connection = self._open[tool.server]
        try:
            result = await connection.call(tool.own, args)
        except CallFailed as error:
            raise ToolCallFailed(str(error)) from error
        if connection.changed and tool.server not in self._told:
            self._told.add(tool.server)
            text = f"MCP server {tool.server} has other tools by now; the step goes on with those that it began with."
            self._context.report(Noticed("mcp-tools", text))
        text = self._answers.text_of(result, tool, self._redact[tool.server])
        if result.is_error:
            raise ToolCallFailed(text)
        return text

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(one.close() for one in self._open.values()), return_exceptions=True)

    def _connection(self, server: McpServer) -> Connection:
        return Connection(server, self._context, self._limits, redact=self._redact[server.name])

    def _redactor(self, server: McpServer) -> Redactor:
        """Return what takes the person's secrets out of what a server says, those too that it alone was given."""
        environ = self._context.environ
        given, sure = secrets_of(server, environ)
        return Redactor({**environ, **given}, (*self._step.model.key_env, *sure))

    def _offer(self, server: str, tools: Sequence[Tool]) -> McpOffer:
        """Return what a server offers; its texts are kept for people, without secrets, and not by half."""
        said = {tool.name: (f"{tool.title or ''}\n{tool.description or ''}", tool.input_schema or {}) for tool in tools}
        clean, texts = self._redact[server], {}
        for tool in tools:
            title, text = clean(tool.title or ""), clean(tool.description or "")
            texts[tool.name] = sayable(text_of_tool(title, text, clean.data(tool.input_schema or {})))
        self._texts[server] = texts
        return McpOffer.of(server, said, utc_now()).with_texts(texts)

    def _text(self, server: str, tool: Tool) -> str:
        return self._redact[server](_text(tool))

    def _take(self, server: str, listed: Sequence[Tool]) -> None:
        """Keep of a server's tools those that the step was given and no policy takes away."""
        there = {tool.name: tool for tool in listed[:_MOST_TOOLS]}
        given = [tool for tool in self._step.tools if tool.startswith(MCP) and server_in(tool) == server]
        for wanted in (tool_of_server(tool) for tool in given if not is_server(tool)):
            if wanted not in there:
                has = ", ".join(list(there)[:_TOLD_TOOLS]) or "none"
                more = ", ..." if len(there) > _TOLD_TOOLS else ""
                raise StepFailed(
                    "setup", f"MCP server {server!r} has no tool {wanted} (it has {one_line(has, 600)}{more})"
                )
        whole = any(is_server(tool) for tool in given)
        left_out: list[str] = []
        for own, tool in there.items():
            name = f"{MCP}{server}__{own}"
            if not (whole or name in given) or self._is_forbidden(name):
                continue
            schema = self._redact[server].data(tool.input_schema or {"type": "object"})
            if not _MODEL_NAME.match(name) or len(json.dumps(schema)) > _SCHEMA_CHARS:
                left_out.append(own)
                continue
            text = self._text(server, tool)
            self._tools[name] = ServedTool(name, server, own, text, schema, hints_of(tool.annotations))
        for text in _left_out(server, left_out, len(listed) - len(there)):
            self._context.report(Noticed("mcp-tools", text))

    def _is_forbidden(self, name: str) -> bool:
        policy = self._step.policy
        return policy is not None and policy.who_forbids_tool(name) is not None


def _parts_shown(before: McpOffer, now: McpOffer, texts: Mapping[str, str]) -> tuple[PartShown, ...]:
    """Return what is new of each tool; what there is no room for is counted."""
    parts = []
    new = [name for name, sha in now.tools.items() if before.tools.get(name) != sha]
    for name in new[:_TOLD_TOOLS]:
        text = difference(before.texts.get(name) if name in before.tools else None, texts[name])
        parts.append(PartShown(name=name, text=text[:PART_CHARS], cut=max(0, len(text) - PART_CHARS)))
    if more := new[_TOLD_TOOLS:]:
        names = ", ".join(more)[:_NAMES_CHARS]
        unseen = sum(len(texts[name]) for name in more)
        parts.append(PartShown(name=f"{len(more)} more tools are not shown", text=names, cut=unseen))
    return tuple(parts)


def _text(tool: Tool) -> str:
    """Return what a model is told that a tool is for."""
    text = tool.description or tool.title or ""
    return text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]} [cut]"


def _left_out(server: str, names: Sequence[str], beyond: int) -> Iterator[str]:
    if names:
        told = one_line(", ".join(names), 300)
        yield f"MCP server {server} has tools that no model can be told of, by their names or their size: {told}."
    if beyond > 0:
        yield f"MCP server {server} has {beyond} more tools than the {_MOST_TOOLS} that a step takes."
