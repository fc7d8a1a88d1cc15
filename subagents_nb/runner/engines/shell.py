"""Run one shell command for an agent, and leave nothing of it behind.

The harness has a shell tool too. It keeps all output in memory and, when cancelled, ends the shell but not what the
shell started; a run that is stopped must take its processes with it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.runner.children import CHILDREN

_DRAIN_S = 0.5  # how long a background child may hold the output open after the shell ended
_GRACE_S = 2.0  # between asking the group to end and ending it
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended. `code` is None when it was cut off by its time limit."""

    output: str
    code: int | None


class Keeper:
    """Keep the head and the tail of a stream of bytes, and count what fell out between them."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece."""
        room = self._half - len(self._head)
        self._head += chunk[:room] if room > 0 else b""
        self._tail += chunk[room:] if room > 0 else chunk
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        """Return what was kept."""
        head, tail = (bytes(part).decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n[... {self._dropped} bytes left out ...]\n{tail}" if self._dropped else head + tail


class Command(asyncio.SubprocessProtocol):
    """One command as it runs. `asyncio.Process.wait` would wait for every holder of the output, not for the shell."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()  # nobody holds the output open any more

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep a piece of the output."""
        del fd
        self._keeper.add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note the end of the output."""
        del fd, exc
        self.silent.set()

    def process_exited(self) -> None:
        """Note the end of the shell."""
        self.exited.set()


async def run_command(command: str, *, cwd: Path, environ: Mapping[str, str], seconds: float, limit: int) -> CommandEnd:
    """Run a command in a session of its own; when this returns or is cancelled, its process group is gone.

    Raises:
        OSError: the shell could not be started.
    """
    shell = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    return await run_program([shell, "-c", command], cwd=cwd, environ=environ, seconds=seconds, limit=limit)


async def run_program(
    argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], seconds: float, limit: int
) -> CommandEnd:
    """Run a program as `run_command` runs a command.

    Raises:
        OSError: it could not be started.
    """
    keeper = Keeper(limit)
    transport, running = await _start(argv, cwd, environ, keeper)
    in_time = False
    try:
        in_time = await _within(seconds, running.exited)
        if in_time:
            await _within(_DRAIN_S, running.silent)
    finally:
        await _finish(transport, running)
    return CommandEnd(output=keeper.text(), code=transport.get_returncode() if in_time else None)


async def _start(
    argv: Sequence[str], cwd: Path, environ: Mapping[str, str], keeper: Keeper
) -> tuple[asyncio.SubprocessTransport, Command]:
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: Command(keeper),
            *argv,
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    )
    starting.add_done_callback(_note_start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # A start that is cancelled half-way would leave a process that nobody knows.
        await _finish(*await starting)
        raise


def _note_start(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, Command]]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        CHILDREN.began(starting.result()[0].get_pid(), what="tool")


async def _finish(transport: asyncio.SubprocessTransport, running: Command) -> None:
    """End what is left of the command's group and close its output."""
    group = transport.get_pid()
    try:
        await _end_group(group)
        await running.exited.wait()
        await _within(_DRAIN_S, running.silent)
    finally:
        if not running.exited.is_set():  # a second cancellation cut the wait
            signal_group(group, signal.SIGKILL)
        CHILDREN.ended(group, transport.get_returncode(), group_empty=not is_anyone_left(group))
        transport.close()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _end_group(group: int) -> None:
    """Ask the group to end, then end it. Returns at once when nobody is left in it."""
    if not signal_group(group, signal.SIGTERM):
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _GRACE_S
    while loop.time() < deadline:
        await asyncio.sleep(_LOOK_S)
        if not is_anyone_left(group):
            return
    signal_group(group, signal.SIGKILL)


def is_anyone_left(group: int) -> bool:
    """Say whether the group has a member that still runs: a zombie, whose parent is slow to look, has ended."""
    if not signal_group(group, 0):
        return False
    stats = [*Path("/proc").glob("[0-9]*/stat")]
    return not stats or any(_runs_in(stat, group) for stat in stats)


def _runs_in(stat: Path, group: int) -> bool:
    try:
        # The name stands in parentheses and may hold anything; state, parent and group follow it.
        state, _parent, its_group, *_ = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return its_group == str(group) and state not in "ZX"


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False if there is none, or none of ours."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
