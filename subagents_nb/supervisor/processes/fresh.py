"""Start a fresh interpreter without letting it, or others, see too much at its start.

Secrets come by a pipe that is read once: what a process was executed with stays readable for as long as it lives, see
proc_pid_environ(5). It imports in the root directory, by a search path without places that depend on where it works: a
file of the workspace is never executed for standing there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Iterator, Mapping

from subagents_nb.domain.agents.environment import exec_environ

VARIABLE = "SUBAGENTS_NB_ENVIRON"  # the number of the descriptor; without it all variables came with the start
_PIPE_BYTES = 1 << 20  # 64 KiB, as a pipe(7) takes at first, may hold us up
_F_SETPIPE_SZ = 1031
_WITHIN_S = 10.0


class Secrets:
    """What a fresh interpreter is to get by the pipe. `handles` must be open in it under the same numbers."""

    def __init__(self, environ: Mapping[str, str], cwd: str) -> None:
        self.environ, hidden = exec_environ(environ)
        self.handles: tuple[int, ...] = ()
        self._data = json.dumps({"cwd": cwd, "environ": hidden}).encode()
        self._writing: int | None = None
        if os.name != "posix":  # no descriptor can be handed on there
            self.environ = dict(environ)
            return
        reading, self._writing = os.pipe()
        self.handles = (reading,)
        self.environ[VARIABLE] = str(reading)

    def send(self) -> None:
        """Write it all, once the process has been started, and let go.

        Raises:
            OSError: it has ended, or does not read.
        """
        if self._writing is None:
            return
        os.close(self.handles[0])
        self.handles = ()
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.fcntl(self._writing, _F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(self._writing, False)
        view, deadline = memoryview(self._data), time.monotonic() + _WITHIN_S
        while view:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([], [self._writing], [], left)[1]:
                raise TimeoutError("it does not read its variables")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._writing, view) :]

    def close(self) -> None:
        """Let go of both ends."""
        for handle in (*self.handles, *([] if self._writing is None else [self._writing])):
            with contextlib.suppress(OSError):
                os.close(handle)
        self.handles, self._writing = (), None


@contextlib.contextmanager
def secrets_for(environ: Mapping[str, str], cwd: str) -> Iterator[Secrets]:
    """Prepare what a fresh interpreter gets by the pipe; whatever happens, nothing of it stays open."""
    secrets = Secrets(environ, cwd)
    try:
        yield secrets
    finally:
        secrets.close()
