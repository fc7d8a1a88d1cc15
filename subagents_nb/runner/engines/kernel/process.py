"""The process of a kernel: a session of its own, few variables, a memory limit; all of its group ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subagents_nb.runner.children import CHILDREN
from subagents_nb.runner.engines.shell import Command, Keeper, is_anyone_left, signal_group
from subagents_nb.store.opener import FOLDER

_MODULE = "subagents_nb.runner.engines.kernel.child"
_SAID_BYTES = 4000
_END_S = 2.0
_LOOK_S = 0.02


class Place:
    """Where kernel and runner meet: sockets in a private directory, named by a path that is never too long for one."""

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self._elsewhere: str | None = None
        self.info: dict[str, Any] = {
            "key": secrets.token_hex(32), "signature_scheme": "hmac-sha256", "kernel_name": "", "transport": "ipc",
            "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
        }  # fmt: skip
        if sys.platform == "linux":
            self._handle = os.open(folder, FOLDER)
            self.info["ip"] = f"/proc/self/fd/{self._handle}/k"
        elif os.name == "posix":
            self._elsewhere = tempfile.mkdtemp(prefix="nb-")
            self.info["ip"] = f"{self._elsewhere}/k"
        else:
            from jupyter_client.connect import write_connection_file

            self.info |= write_connection_file(str(folder / "ports.json"), key=self.info["key"].encode())[1]
            self.info["key"] = self.info["key"].decode()
        self.file = folder / "connection.json"
        handle = os.open(self.file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(self.info, file)

    @property
    def handles(self) -> tuple[int, ...]:
        """Return the descriptors that the kernel has to have under the same numbers."""
        return () if self._handle is None else (self._handle,)

    def close(self) -> None:
        """Remove what is left of the sockets."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._elsewhere is not None:
            shutil.rmtree(self._elsewhere, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.file.unlink()
        for number in range(1, 6):
            with contextlib.suppress(OSError):
                (self.file.parent / f"k-{number}").unlink()


class KernelProcess:
    """A started kernel. Its own output, which only a fault at its start makes interesting, is kept in part."""

    def __init__(self, transport: asyncio.SubprocessTransport, running: Command, keeper: Keeper) -> None:
        self._transport = transport
        self._keeper = keeper
        self._running = running
        self.pid = transport.get_pid()

    @classmethod
    async def start(
        cls, place: Place, *, folder: Path, cwd: Path, environ: Mapping[str, str], memory_mb: int
    ) -> KernelProcess:
        """Start the process.

        Raises:
            OSError: it could not be started.
        """
        keeper = Keeper(_SAID_BYTES)
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: Command(keeper),
                sys.executable,
                "-P",  # a file of the workspace must not stand in for one of the kernel's modules
                "-m",
                _MODULE,
                str(place.file),
                str(memory_mb * 1_000_000),
                cwd=cwd,
                env=_environ(environ, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=place.handles,
            )
        )
        starting.add_done_callback(_note_start)
        try:
            return cls(*await asyncio.shield(starting), keeper)
        except asyncio.CancelledError:
            # A start that is cancelled half-way would leave a process that nobody knows.
            await cls(*await starting, keeper).end()
            raise

    @property
    def gone(self) -> asyncio.Event:
        """Return what is set when the process has ended."""
        return self._running.exited

    @property
    def code(self) -> int | None:
        """Return how it ended: below zero, the signal."""
        return self._transport.get_returncode()

    @property
    def said(self) -> str:
        """Return what it wrote past its cells."""
        return self._keeper.text().strip()

    def interrupt(self) -> None:
        """Interrupt what it is doing; nothing if it has ended."""
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    async def end(self) -> None:
        """End its whole group at once: a kernel has nothing to put away."""
        try:
            signal_group(self.pid, signal.SIGKILL)
            loop = asyncio.get_running_loop()
            deadline = loop.time() + _END_S
            while loop.time() < deadline and (not self.gone.is_set() or is_anyone_left(self.pid)):
                await asyncio.sleep(_LOOK_S)
        finally:
            CHILDREN.ended(self.pid, self.code, group_empty=not is_anyone_left(self.pid))
            self._transport.close()


def _note_start(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, Command]]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        CHILDREN.began(starting.result()[0].get_pid(), what="tool")


def _environ(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the kernel's variables: it shares no profile and no history with the person's own kernels."""
    own = {"IPYTHONDIR": str(folder), "JPY_PARENT_PID": str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    if importlib.util.find_spec("matplotlib") is not None:
        own["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    return {**environ, **own}
