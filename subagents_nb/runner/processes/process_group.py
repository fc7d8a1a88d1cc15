"""A process that leads a session of its own, and its group: nobody of it is left when it was ended.

The leader is not reaped before its group has ended. Until then its number stays its own, however long ago it ended
itself, so what is signalled by that number is never a stranger. asyncio's own subprocesses are reaped at once:
python/cpython#127049.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from subagents_nb.runner.processes.children import CHILDREN
from subagents_nb.signals import KILL, has_ended, is_unreaped, signal_child, signal_group, signal_process
from subagents_nb.store.processes.process_list import everyone

_GRACE_S = 2.0  # between asking the group to end and ending it
_END_S = 2.0  # what was ended by force is gone within
_DRAIN_S = 0.5
_LOOK_S = 0.02
_SANDBOX_LEVELS = 2  # bwrap, and in its namespace the first process, which reaps


class _Output(asyncio.Protocol):
    def __init__(self, keep: Callable[[bytes], None], silent: asyncio.Event) -> None:
        self._keep = keep
        self._silent = silent

    def data_received(self, data: bytes) -> None:
        self._keep(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._silent.set()


class Group:
    """One started process. What it prints is handed on; to end it is its owner's duty, whatever happens."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()  # nobody holds the output open any more
        self.errors_silent = asyncio.Event()  # likewise, where errors are heard apart
        self.code: int | None = None  # once it is reaped; below zero, the signal
        self._process = process
        self._pipes: list[asyncio.BaseTransport] = []
        self._handle: int | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        keep: Callable[[bytes], None],
        errors: Callable[[bytes], None] | None = None,
        handles: tuple[int, ...] = (),
    ) -> Group:
        """Start it, its input closed, both its outputs to `keep`; with `errors`, to be talked to, and these apart.

        Raises:
            OSError: it could not be started.
        """
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL if errors is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors is None else subprocess.PIPE,
            start_new_session=True,
            pass_fds=handles,
        )
        CHILDREN.began(process.pid, what="tool")
        group = cls(process)
        try:
            group._watch()
            await group._hear(process.stdout, keep, group.silent)
            if errors is not None and process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                await group._hear(process.stderr, errors, group.errors_silent)
        except BaseException:
            await group.end(grace_s=0.0)
            raise
        return group

    async def _hear(self, pipe: Any, keep: Callable[[bytes], None], silent: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: _Output(keep, silent), pipe)
        self._pipes.append(transport)

    async def write(self, data: bytes) -> None:
        """Write to its input, however long it takes to read that.

        Raises:
            OSError: its input is closed.
        """
        left = memoryview(data)
        while left:
            pipe = self._process.stdin
            if pipe is None or pipe.closed:
                raise BrokenPipeError("its input is closed")
            try:
                left = left[os.write(pipe.fileno(), left) :]
            except BlockingIOError:
                await _writable(pipe.fileno())

    def close_input(self) -> None:
        """Close its input, if it is open."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            asyncio.get_running_loop().remove_writer(self._process.stdin.fileno())
            self._process.stdin.close()

    def signal(self, number: int) -> None:
        """Signal the leader alone; nothing if it has ended."""
        signal_child(self.pid, number)

    def signal_innermost(self, number: int) -> None:
        """Signal whom the leader started to start another: in a sandbox the program itself, which bwrap(1) hands to."""
        below = self.pid
        for _ in range(_SANDBOX_LEVELS):
            own = [one for one in everyone().values() if one.parent == below and one.group == self.pid]
            if len(own) != 1:
                return
            below = own[0].pid
        signal_process(below, own[0].ticks, number)

    async def end(self, *, grace_s: float = _GRACE_S) -> None:
        """Ask the group to end, after a while end it, and reap its leader; a second cancellation ends it at once."""
        empty: bool | None = None
        try:
            if grace_s and signal_group(self.pid, signal.SIGTERM):
                await self._until_empty(grace_s)
            signal_group(self.pid, KILL)
            await self._until_empty(_END_S)
            await self.exited.wait()
            await within(_DRAIN_S, self.silent)
        finally:
            signal_group(self.pid, KILL)
            if is_unreaped(self.pid):
                empty = not is_anyone_left(self.pid)
            self._let_go()
            CHILDREN.ended(self.pid, self.code, group_empty=empty)

    async def _until_empty(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while is_anyone_left(self.pid) and loop.time() < deadline:
            await asyncio.sleep(_LOOK_S)

    def _watch(self) -> None:
        """Notice its end without reaping it."""
        loop = asyncio.get_running_loop()
        try:
            self._handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # no descriptors of processes here, or none left
            threading.Thread(target=self._await_exit, args=(loop,), name="await-exit", daemon=True).start()
        else:
            loop.add_reader(self._handle, self._noticed)

    def _noticed(self) -> None:
        self._forget_handle()
        self.exited.set()

    def _await_exit(self, loop: asyncio.AbstractEventLoop) -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        if not loop.is_closed():
            loop.call_soon_threadsafe(self.exited.set)

    def _forget_handle(self) -> None:
        if self._handle is not None:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _let_go(self) -> None:
        """Reap it if it has ended; one that can't be ended now, stuck in the system say, is left to who comes after."""
        self._forget_handle()
        if is_unreaped(self.pid) and (self.exited.is_set() or has_ended(self.pid)):
            self.code = self._process.wait()
        else:
            self.code = self._process.poll()
        self.close_input()
        for pipe in self._pipes:
            pipe.close()
        if not self._pipes and self._process.stdout is not None:
            self._process.stdout.close()


async def _writable(handle: int) -> None:
    loop, free = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(handle, free.set)
    try:
        await free.wait()
    finally:
        loop.remove_writer(handle)


async def within(seconds: float, event: asyncio.Event) -> bool:
    """Wait so long for an event; say whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def is_anyone_left(leader: int) -> bool:
    """Say whether the group of an unreaped leader has a member that still runs: a zombie, in kill(2), does not."""
    if not signal_group(leader, 0):
        return False
    try:
        processes = everyone()
    except OSError:  # no /proc here, or no descriptor left to look with
        return not has_ended(leader)
    return any(one.group == leader and not one.ended for one in processes.values())
