"""One server of a step: connected within its limit, asked for its tools once, called until the step is over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, CallToolResult, Implementation, Tool, ToolListChangedNotification

from subagents_nb.domain.agents.acting import CHANGED
from subagents_nb.domain.agents.mcp_servers import McpServer, ReadyServer, VariableMissing, ready
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.values.words import duration
from subagents_nb.runner.engines.clean_text import Redactor, one_line
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.mcp.eliciting import Eliciting
from subagents_nb.runner.mcp.stdio_server import MOST_MESSAGE_BYTES, StdioServer
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.store.files.named_files import files_named, started_in
from subagents_nb.version import __version__

# What the SDK logs may hold what a server said, which is redacted nowhere; what fails comes to us as an error.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
_PAGES = 20
_CLOSE_S = 2.0
_LINE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLimits:
    """How long a server may take."""

    start_s: float = 30.0
    call_s: float = 300.0


class CallFailed(Exception):
    """A call came to nothing; the text is for the model."""


class Connection:
    """One server. A task of its own holds it: what the SDK opens has to be closed by who opened it."""

    def __init__(
        self,
        server: McpServer,
        context: StepContext,
        limits: McpLimits,
        *,
        redact: Redactor,
    ) -> None:
        self.server = server
        self._context = context
        self._limits = limits
        self._redact = redact
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._process: StdioServer | None = None
        self._client: Client | None = None
        self._timers: set[asyncio.Timeout] = set()
        self._asking = 0
        self.changed = False  # it says that its tools are others now

    @property
    def called(self) -> str:
        """Return it as it is told."""
        return f"MCP server {self.server.name!r}"

    async def connect(self) -> tuple[Tool, ...]:
        """Start or reach the server, and return its tools.

        Raises:
            StepFailed: it is not there within its limit.
        """
        there: asyncio.Future[tuple[Tool, ...]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(there), name=f"mcp-{self.server.name}")
        try:
            async with asyncio.timeout(self._limits.start_s):
                waited: set[asyncio.Future[Any]] = {there, self._task}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise self._failed(f"did not start within {duration(self._limits.start_s)}") from None
        if there.done():
            return there.result()
        error = self._task.exception() if not self._task.cancelled() else None
        raise self._failed(f"did not start: {self._why(error)}")

    async def call(self, tool: str, args: dict[str, Any]) -> CallToolResult:
        """Call one of its tools.

        Raises:
            CallFailed: there is no result.
        """
        client = self._client
        if client is None or self._task is None or self._task.done():
            raise CallFailed(f"{self.called} has ended; its tools can't be used any more.")
        try:
            async with asyncio.timeout(None if self._asking else self._call_s) as timer:
                with self._noted(timer):
                    return await client.call_tool(tool, args)
        except TimeoutError:
            raise CallFailed(f"{self.called} did not answer within {duration(self._call_s)}.") from None
        except MCPError as error:
            if self._process is not None and error.code == CONNECTION_CLOSED:
                await self._process.gone()
                last = "; ".join(filter(None, (self._why(None), self._last_words)))
                raise CallFailed(f"{self.called} ended in this call: {last}.") from error
            if error.code == PARSE_ERROR:
                raise CallFailed(f"{self.called} gave no answer that can be read: {self._text(error)}.") from error
            lost = self._process is None and error.code == CONNECTION_CLOSED
            raise CallFailed(f"{self.called} {'gave no answer' if lost else 'says'}: {self._text(error)}") from error
        except (ValueError, RuntimeError, OSError) as error:  # an answer that is none
            raise CallFailed(f"{self.called} gave no answer that can be read: {self._text(error)}") from error

    @property
    def _call_s(self) -> float:
        given = self._context.limits.tool_timeout_s
        return self._limits.call_s if given is None else given

    @contextlib.contextmanager
    def _noted(self, timer: asyncio.Timeout) -> Iterator[None]:
        self._timers.add(timer)
        try:
            yield
        finally:
            self._timers.discard(timer)

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Hold still the limits of open calls while the person is asked: which call asks, a server need not say."""
        self._asking += 1
        self._set(None)
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._set(asyncio.get_running_loop().time() + self._call_s)

    def _set(self, when: float | None) -> None:
        for timer in self._timers:
            if not timer.expired():
                timer.reschedule(when)

    async def _heard(self, message: Any) -> None:
        self.changed = self.changed or isinstance(message, ToolListChangedNotification)

    async def close(self) -> None:
        """End it; when this returns, nothing of its process is left."""
        self._over.set()
        task, self._task = self._task, None
        if task is None:
            return
        done, _ = await asyncio.wait({task}, timeout=_CLOSE_S)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=_CLOSE_S)
        if task.done() and not task.cancelled():
            task.exception()  # told already by what failed; asyncio would log it as it is

    async def _hold(self, there: asyncio.Future[tuple[Tool, ...]]) -> None:
        async with self._streams() as transport:
            client = Client(
                transport,
                elicitation_callback=Eliciting(self.server.name, self._context, self._waiting, self._redact),
                message_handler=self._heard,
                client_info=Implementation(name="subagents-nb", version=__version__),
                cache=None,
            )
            async with client:
                tools = await self._listed(client)
                self._client = client
                there.set_result(tools)
                await self._over.wait()

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        made = self._ready()
        if made.url is not None:
            from subagents_nb.runner.mcp.http_server import http_streams

            async with http_streams(made) as transport:
                yield transport
            return

        def told(process: StdioServer) -> None:
            self._process = process

        context = self._context
        cwd = started_in(made, context.cwd)
        log = context.step_dir / f"mcp-{self.server.name}.log"
        if (sandbox := context.sandbox) is not None:
            argv = tuple(sandbox.argv(made.argv, cwd=cwd, environ=made.environ))
            made = replace(made, argv=argv, environ=sandbox.environ(made.environ or {}))
        if (other := await in_thread(self._not_as_allowed)) is not None:
            raise StepFailed("setup", other)
        yield StdioServer.started(made, cwd=cwd, log=log, redact=self._redact, told=told)

    def _ready(self) -> ReadyServer:
        try:
            return ready(self.server, self._context.environ, self._context.tool_environ)
        except VariableMissing as error:
            raise StepFailed("setup", str(error)) from error

    def _not_as_allowed(self) -> str | None:
        """Return why it is another than was allowed when the run was planned: a file that its command line names."""
        allowed, context = self.server.allowed, self._context
        if allowed is None:
            return None
        roots = (context.cwd / allowed.way, Path(allowed.project))
        now = files_named(self.server, context.environ, here=context.cwd, roots=roots)
        for path, sha in now.items():
            if path not in allowed.files:
                return f"{one_line(path)}, which its command line means here, is none of the files that were allowed"
            if allowed.files[path] != sha:
                return f"{one_line(path)}: {CHANGED}"
        return None

    async def _listed(self, client: Client) -> tuple[Tool, ...]:
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return tuple(found)

    def _failed(self, text: str) -> StepFailed:
        said = f"; {self._last_words or 'it said nothing'}" if self._process is not None else "."
        return StepFailed("setup", f"{self.called} {text}{said}")

    @property
    def _last_words(self) -> str:
        said = self._process.last_line if self._process is not None else ""
        return f"its last line: {one_line(said, _LINE_CHARS)}" if said else ""

    def _why(self, error: BaseException | None) -> str:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
            return self._why(error)
        if isinstance(error, StepFailed):
            return error.message
        if isinstance(error, OSError) and error.strerror and self._process is None:
            return f"{self.server.command or 'it'}: {error.strerror}"
        if self._process is not None and self._process.too_long:
            return f"it sent a message of more than {MOST_MESSAGE_BYTES // 1_000_000} MB"
        if self._process is not None and self._process.ended:
            return "its process has ended"
        return self._text(error) if error is not None else "it has gone"

    def _text(self, error: BaseException) -> str:
        return one_line(self._redact(str(error) or type(error).__name__), _LINE_CHARS)
