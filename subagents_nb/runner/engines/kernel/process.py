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
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subagents_nb.runner.engines.engine import Sandboxed
from subagents_nb.runner.engines.tools.shell import HeadAndTail
from subagents_nb.runner.processes.process_group import Group
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import FOLDER

_MODULE = "subagents_nb.runner.engines.kernel.kernel_child"
_SAID_BYTES = 4000
_SANDBOXED = "/run/kernel"  # what the folder is called in a sandbox


class KernelFolder:
    """Where kernel and runner meet: sockets in a private directory, named by a path that is never too long: unix(7)."""

    def __init__(self, folder: Path, *, sandboxed: bool = False) -> None:
        self._handle: int | None = None
        self._other_home_hint: str | None = None
        self.info: dict[str, Any] = {
            "key": secrets.token_hex(32), "signature_scheme": "hmac-sha256", "kernel_name": "", "transport": "ipc",
            "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
        }  # fmt: skip
        if sys.platform == "linux":
            self._handle = os.open(folder, FOLDER)
            self.info["ip"] = f"/proc/self/fd/{self._handle}/k"
        elif os.name == "posix":
            self._other_home_hint = tempfile.mkdtemp(prefix="nb-")
            self.info["ip"] = f"{self._other_home_hint}/k"
        else:
            from jupyter_client.connect import write_connection_file

            self.info |= write_connection_file(str(folder / "ports.json"), key=self.info["key"].encode())[1]
            self.info["key"] = self.info["key"].decode()
        self.file = folder / "connection.json"
        # No descriptor of a folder comes into a sandbox, which it would lead out of: there the folder has a short name.
        known = {**self.info, "ip": f"{_SANDBOXED}/k"} if sandboxed else self.info
        handle = DISK.open(self.file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(known, file)

    @property
    def handles(self) -> tuple[int, ...]:
        """Return the descriptors that the kernel has to have under the same numbers."""
        return () if self._handle is None else (self._handle,)

    def close(self) -> None:
        """Remove what is left of the sockets."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._other_home_hint is not None:
            shutil.rmtree(self._other_home_hint, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.file.unlink()
        for number in range(1, 6):
            with contextlib.suppress(OSError):
                (self.file.parent / f"k-{number}").unlink()


class KernelProcess:
    """A started kernel. Its own output, which only a fault at its start makes interesting, is kept in part."""

    def __init__(self, group: Group, keeper: HeadAndTail, *, sandboxed: bool = False) -> None:
        self._group = group
        self._sandboxed = sandboxed
        self._queue_owner = keeper
        self.pid = group.pid

    @classmethod
    async def start(
        cls,
        place: KernelFolder,
        *,
        folder: Path,
        cwd: Path,
        environ: Mapping[str, str],
        memory_mb: int,
        sandbox: Sandboxed | None = None,
    ) -> KernelProcess:
        """Start the process.

        Raises:
            OSError: it could not be started.
        """
        keeper = HeadAndTail(_SAID_BYTES)
        # -P: a file of the workspace must not stand in for one of the kernel's modules.
        argv = [sys.executable, "-P", "-m", _MODULE, str(place.file), str(memory_mb * 1_000_000)]
        variables = _environ(environ, folder)
        handles = place.handles
        if sandbox is not None:
            # Where this process reads what it made is a mount of its own: no link to elsewhere takes its place.
            real, tables = os.path.realpath(folder), os.path.realpath(folder / "tables")
            also = ((real, real), (tables, tables), (real, _SANDBOXED))
            argv = sandbox.argv(argv, cwd=cwd, also=also, environ=variables)
            variables, handles = sandbox.environ(variables), ()
            del variables["JPY_PARENT_PID"]  # of another namespace; it ends with the sandbox
        group = await Group.start(argv, cwd=cwd, environ=variables, keep=keeper.add, handles=handles)
        return cls(group, keeper, sandboxed=sandbox is not None)

    @property
    def gone(self) -> asyncio.Event:
        """Return what is set when the process has ended."""
        return self._group.exited

    @property
    def output(self) -> str:
        """Return what it wrote past its cells."""
        return self._queue_owner.text().strip()

    def interrupt(self) -> None:
        """Interrupt what it is doing; nothing if it has ended."""
        if self._sandboxed:
            self._group.signal_innermost(signal.SIGINT)
        else:
            self._group.signal(signal.SIGINT)

    async def end(self) -> None:
        """End its whole group at once: a kernel has nothing to put away."""
        await self._group.end(grace_s=0.0)


def _environ(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the kernel's variables: it shares no profile and no history with the person's own kernels."""
    own = {"IPYTHONDIR": str(folder), "JPY_PARENT_PID": str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    if importlib.util.find_spec("matplotlib") is not None:
        own["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    return {**environ, **own}
