"""Run one shell command for an agent, and leave nothing of it behind.

The harness has a shell tool too. It keeps all output in memory and, when cancelled, ends the shell but not what the
shell started; a run that is stopped must take its processes with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agents.environment import absolute_entries
from subagents_nb.runner.engines.engine import Sandboxed
from subagents_nb.runner.processes.process_group import Group, within

_DRAIN_S = 0.5  # how long a background child may hold the output open after the shell ended


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended. `code` is None when it was cut off by its time limit."""

    output: str
    code: int | None


class HeadAndTail:
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


async def run_command(
    command: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    seconds: float,
    limit: int,
    sandbox: Sandboxed | None = None,
) -> CommandEnd:
    """Run a command in a session of its own; when this returns or is cancelled, its process group is gone.

    Raises:
        OSError: the shell could not be started.
    """
    # The commands in it are found as the person's path says; the shell itself is none that lies in the workspace.
    shell = shutil.which("bash", path=absolute_entries(environ.get("PATH", os.defpath))) or "/bin/sh"
    argv = [shell, "-c", command]
    if sandbox is not None:
        argv, environ = sandbox.argv(argv, cwd=cwd, environ=environ), sandbox.environ(environ)
    return await run_program(argv, cwd=cwd, environ=environ, seconds=seconds, limit=limit)


async def run_program(
    argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], seconds: float, limit: int
) -> CommandEnd:
    """Run a program as `run_command` runs a command.

    Raises:
        OSError: it could not be started.
    """
    keeper = HeadAndTail(limit)
    group = await Group.start(argv, cwd=cwd, environ=environ, keep=keeper.add)
    in_time = False
    try:
        in_time = await within(seconds, group.exited)
        if in_time:
            await within(_DRAIN_S, group.silent)
    finally:
        await group.end()
    return CommandEnd(output=keeper.text(), code=group.code if in_time else None)
