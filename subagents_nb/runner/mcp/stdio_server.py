"""A server that is a process of ours: messages over its pipes, what it says beside them kept, nothing of it left.

The SDK has a transport of its own. It starts processes that nobody else knows of; ours stand in the run's account, so
that whoever clears up after a runner that was killed finds them.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import math
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from subagents_nb.domain.agents.mcp_servers import ReadyServer
from subagents_nb.domain.texts.redaction import RedactedStream, Redactor
from subagents_nb.runner.processes.process_group import Group, within
from subagents_nb.store.files.disk import DISK

MOST_MESSAGE_BYTES = 32_000_000
_LOG_BYTES = 1_000_000
_LINE_BYTES = 2_000
_ID, _HEAD_CHARS = re.compile(r'"id"\s*:\s*(\d{1,15})'), 200
_LEAVE_S, _GRACE_S = 0.5, 0.4  # after its input was closed, and after it was asked to end


class SaidBeside:
    """What a server writes to its standard error: the first of it in a file, the last line for people."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._handle: int | None = DISK.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        self._room = _LOG_BYTES
        self._last = b""
        self._decoded = codecs.getincrementaldecoder("utf-8")("replace")
        self._clean = RedactedStream(redact)

    def add(self, data: bytes) -> None:
        """Take the next piece; what is too much is read and forgotten, so that the server does not stand still."""
        self._keep(self._clean.push(self._decoded.decode(data)))

    def _keep(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        lines = (self._last + data)[-2 * _LINE_BYTES :].rstrip(b"\n").rpartition(b"\n")
        self._last = lines[2] + (b"\n" if data.endswith(b"\n") else b"")
        if self._handle is not None and self._room > 0:
            with contextlib.suppress(OSError):
                self._room -= os.write(self._handle, data[: self._room])

    @property
    def last_line(self) -> str:
        """Return the last line of it."""
        return self._last.strip()[-_LINE_BYTES:].decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Close the file."""
        self._keep(self._clean.end())
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class _Lines:
    """Bytes put together to lines; a line that never ends is given up."""

    def __init__(self, take: Callable[[bytes], None], give_up: Callable[[], None]) -> None:
        self._take = take
        self._give_up = give_up
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._take(b"".join((*self._parts, line)))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > MOST_MESSAGE_BYTES:
            self._parts, self._size = [], 0
            self._give_up()


def unreadable_answer(line: bytes) -> JSONRPCError | None:
    """Return an error in the place of an answer that can't be read; None for what is none, as a line of a log."""
    if not line.lstrip().startswith(b"{"):
        return None
    text = line.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
        asked = None if "method" in fields else fields.get("id")
    except (ValueError, RecursionError):
        # Where an answer says which one it is: by its beginning, or by its end.
        head, tail = text[:_HEAD_CHARS], text[-_HEAD_CHARS:]
        named = None if '"method"' in head else _ID.search(head) or _ID.search(tail)
        asked = int(named[1]) if named is not None else None
    if not isinstance(asked, int | str) or isinstance(asked, bool):
        return None
    error = ErrorData(code=PARSE_ERROR, message="what it sent is no answer")
    return JSONRPCError(jsonrpc="2.0", id=asked, error=error)


class StdioServer:
    """One started server."""

    def __init__(self, group: Group, beside: SaidBeside) -> None:
        self._group = group
        self._beside = beside
        self.too_long = False  # it sent a message that can't be taken

    @classmethod
    @contextlib.asynccontextmanager
    async def started(
        cls, ready: ReadyServer, *, cwd: Path, log: Path, redact: Redactor, told: Callable[[StdioServer], None]
    ) -> AsyncIterator[Any]:
        """Start a server, tell who it is, and return its streams; when this is left, its process group is gone.

        Raises:
            OSError: it could not be started.
        """
        into, read = anyio.create_memory_object_stream[Any](math.inf)
        write, out = anyio.create_memory_object_stream[Any](0)
        beside = SaidBeside(log, redact)

        def take(line: bytes) -> None:
            if not line.strip():
                return
            message: SessionMessage | Exception
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as error:
                instead = unreadable_answer(line)  # whoever waits for it is told at once
                message = SessionMessage(instead) if instead is not None else error  # else the session passes over it
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                into.send_nowait(message)

        def give_up() -> None:
            server.too_long = True
            into.close()

        lines = _Lines(take, give_up)
        try:
            group = await Group.start(
                ready.argv, cwd=cwd, environ=ready.environ or {}, keep=lines.add, errors=beside.add
            )
        except BaseException:
            for one in (beside, into, read, write, out):
                one.close()
            raise
        server = cls(group, beside)
        told(server)
        moving = [asyncio.create_task(server._write(out)), asyncio.create_task(server._notice_end(into))]
        try:
            yield read, write
        finally:
            try:
                await server._end()
            finally:
                for task in moving:
                    task.cancel()
                for one in (beside, into, read, write, out):
                    one.close()

    @property
    def last_line(self) -> str:
        """Return the last line that it wrote beside its messages."""
        return self._beside.last_line

    @property
    def ended(self) -> bool:
        """Say whether its process has ended."""
        return self._group.exited.is_set()

    async def gone(self) -> None:
        """Wait a moment for its end, and for its last words: its output may be closed before either is noticed."""
        for event in (self._group.exited, self._group.errors_silent):
            await within(_LEAVE_S, event)

    async def _write(self, messages: Any) -> None:
        with contextlib.suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for one in messages:
                text: str = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._group.write(text.encode("utf-8", "replace") + b"\n")
        messages.close()

    async def _notice_end(self, into: Any) -> None:
        await self._group.silent.wait()
        into.close()

    async def _end(self) -> None:
        """End it as the specification has it: its input is closed, it is asked to end, it is ended."""
        self._group.close_input()
        await within(_LEAVE_S, self._group.exited)
        await self._group.end(grace_s=_GRACE_S)
