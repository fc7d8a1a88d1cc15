"""One live kernel and the talk with it, over Jupyter's protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient

from subagents_nb.runner.engines.engine import Sandboxed
from subagents_nb.runner.engines.kernel.process import KernelFolder, KernelProcess

START_S = 60.0
_INTERRUPT_S = 5.0  # how long an interrupted cell may take to let go
_AGAIN_S = 2.0  # then an interrupt that was not heard is repeated
_LATE_S = 2.0  # what a cell printed may come after its reply
_MESSAGE_BYTES = 32 * 1024 * 1024  # a figure of 20 MB fits; a kernel that says more at once is not heard
_UNHEARD = {
    "msg_type": "stream",
    "content": {"name": "stderr", "text": "[Output was lost: more at once than can be taken in. Print less of it.]\n"},
}

CellEnd = Literal["done", "interrupted", "stuck", "died"]
Hear = Callable[[dict[str, Any]], None]


class KernelProblem(Exception):
    """There is no kernel; the text says why."""


class Session:
    """A kernel, from its start to its end."""

    def __init__(self, place: KernelFolder, process: KernelProcess) -> None:
        self._place = place
        self._process = process
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.MAXMSGSIZE, _MESSAGE_BYTES)
        self._client = AsyncKernelClient(context=self._context)
        self._client.load_connection_info(cast(Any, dict(place.info)))
        self._client.start_channels(stdin=False, hb=False, control=False)
        self._open: str | None = None  # a cell whose end nobody waited for

    @classmethod
    async def start(
        cls,
        folder: Path,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        memory_mb: int,
        sandbox: Sandboxed | None = None,
    ) -> Session:
        """Start a kernel whose private directory is `folder`, and wait until it answers.

        Raises:
            KernelProblem: it did not come up.
        """
        try:
            place = KernelFolder(folder, sandboxed=sandbox is not None)
        except OSError as error:
            raise KernelProblem(f"its directory can't be used ({error.strerror})") from error
        try:
            process = await KernelProcess.start(
                place, folder=folder, cwd=cwd, environ=environ, memory_mb=memory_mb, sandbox=sandbox
            )
        except OSError as error:
            place.close()
            raise KernelProblem(f"its process could not be started ({error.strerror})") from error
        session = cls(place, process)
        try:
            await session._until_ready()
        except BaseException:
            await session.end()
            raise
        return session

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return not self._process.gone.is_set()

    async def run(self, code: str, hear: Hear, *, seconds: float | None, quiet: bool = False) -> CellEnd:
        """Carry out a cell and hand on what the kernel says about it.

        `interrupted`: the time was over, and the kernel lives on with its variables. `stuck`: it did not let go; it has
        to be ended. `died`: its process is gone.
        """
        cell = self._client.execute(code, silent=quiet, store_history=not quiet, allow_stdin=False)
        self._open = cell
        idle = asyncio.ensure_future(self._receive(cell, hear))
        reply = asyncio.ensure_future(self._reply(cell))
        gone = asyncio.ensure_future(self._process.gone.wait())
        try:
            end: CellEnd = "done"
            await asyncio.wait({reply, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done() and not gone.done():
                end = "interrupted"
                self._process.interrupt()
                await asyncio.wait({reply, gone}, timeout=_INTERRUPT_S, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                end = "died"
            elif not reply.done():
                end = "stuck"
            else:
                self._open = None
                await asyncio.wait({idle}, timeout=_LATE_S)
                if not idle.done():
                    hear(_UNHEARD)
                    await self._listen_anew()
        except asyncio.CancelledError:
            self._process.interrupt()
            raise
        finally:
            for task in (idle, reply, gone):
                task.cancel()
        return end

    async def settle(self) -> bool:
        """Wait until a cell that nobody waited for has let go; say whether the kernel is free now.

        It was interrupted when it was left. To interrupt once more at once might hit the next cell.
        """
        for seconds in (_AGAIN_S, _INTERRUPT_S):
            if self._open is None or not self.alive:
                return self.alive
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._reply(self._open)
                self._open = None
                return True
            self._process.interrupt()
        return False

    async def end(self) -> None:
        """End the kernel and everything it started in its group."""
        try:
            await self._process.end()
        finally:
            self._client.stop_channels()
            self._context.destroy(linger=0)
            self._place.close()

    async def _until_ready(self) -> None:
        ready = asyncio.ensure_future(self._client.wait_for_ready(timeout=START_S))
        gone = asyncio.ensure_future(self._process.gone.wait())
        try:
            await asyncio.wait({ready, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                output = self._process.output[-500:]
                raise KernelProblem(f"it ended at its start{f': {output}' if output else ''}")
            try:
                ready.result()
            except RuntimeError as error:
                raise KernelProblem(f"it did not answer within {START_S:g} seconds") from error
        finally:
            ready.cancel()
            gone.cancel()

    async def _listen_anew(self) -> None:
        # ZeroMQ closes a connection on which too much came at once, zmq_setsockopt(3), and opens it no more by itself.
        self._client.iopub_channel.stop()
        self._client._iopub_channel = None  # the next to ask for it gets a new one
        self._client.iopub_channel.start()
        with contextlib.suppress(RuntimeError):
            await self._client.wait_for_ready(timeout=_INTERRUPT_S)

    async def _reply(self, cell: str) -> dict[str, Any]:
        while True:
            message = await self._client.get_shell_msg(timeout=None)
            if message["parent_header"].get("msg_id") == cell:
                return message

    async def _receive(self, cell: str, hear: Hear) -> None:
        while True:
            message = await self._client.get_iopub_msg(timeout=None)
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["msg_type"] == "status" and message["content"].get("execution_state") == "idle":
                return
            hear(message)
