"""Start a runner, warm or cold, and hold its barrier: it does nothing before `proceed`."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from subagents_nb.domain.environment import RUN_MARK
from subagents_nb.errors import LaunchError
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.lock import probe
from subagents_nb.supervisor import wire
from subagents_nb.supervisor.leftovers import mark_of

SPAWN_VARIABLE = "SUBAGENTS_NB_SPAWN"
_ACK_S = 10.0
_WARM_WAIT_S = 60.0
_starting: list[subprocess.Popen[bytes]] = []

SpawnMode = Literal["auto", "warm", "cold"]


@dataclass(frozen=True, slots=True)
class Started:
    """A runner that waits at its barrier. Call exactly one of `proceed` and `abandon`."""

    pid: int
    start_ticks: int | None
    spawn: Literal["warm", "cold"]
    _send: Callable[[bytes], None]
    _close: Callable[[], None]

    def proceed(self, token: str) -> None:
        """Let the runner work: who owns it is on disk now.

        Raises:
            LaunchError: it is gone already.
        """
        try:
            self._send(f"{wire.PROCEED} {token}\n".encode())
        except OSError as error:
            raise LaunchError("The run's process ended before it could be told to begin.") from error
        finally:
            self._close()

    def abandon(self) -> None:
        """Let go without a word; the runner sees the barrier close and ends without having begun."""
        self._close()


def spawn_mode(environ: Mapping[str, str] = os.environ) -> SpawnMode:
    """Return how runners are started: `SUBAGENTS_NB_SPAWN`, else warm where forking is safe, else cold."""
    wanted = environ.get(SPAWN_VARIABLE, "auto")
    if wanted not in ("auto", "warm", "cold"):
        raise LaunchError(f"{SPAWN_VARIABLE} is {wanted!r}; it can be auto, warm or cold.")
    if wanted == "auto" and not sys.platform.startswith("linux"):
        return "cold"
    return wanted  # type: ignore[return-value]


def start_runner(home: StoreHome, *, run_id: str, token: str, cwd: str, environ: Mapping[str, str]) -> Started:
    """Start the runner of a stored plan; it waits at its barrier.

    Warm where a supervisor listens. In `auto` the first launch of all is cold while a supervisor warms up beside it.

    Raises:
        LaunchError: no process could be started; none is left.
    """
    child_environ = {**environ, RUN_MARK: mark_of(run_id, token)}
    mode = spawn_mode()
    if mode != "cold":
        connection = _connect(home, wait_s=_WARM_WAIT_S if mode == "warm" else 0.0)
        if connection is not None:
            return _start_warm(connection, run_id, token, cwd, child_environ)
        if mode == "warm":
            raise LaunchError(f"No supervisor came up within {_WARM_WAIT_S:g} s; see {home.supervisor / 'host.log'}.")
    return _start_cold(home, run_id, token, cwd, child_environ)


def _connect(home: StoreHome, *, wait_s: float) -> socket.socket | None:
    key = wire.supervisor_key()
    path = home.supervisor / f"{key}.sock"
    deadline = time.monotonic() + wait_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_ACK_S)
        try:
            with wire.SocketName(path) as address:
                connection.connect(address)
        except OSError:
            connection.close()
        else:
            return connection
        ensure_host(home, key)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.02)


def ensure_host(home: StoreHome, key: str | None = None) -> None:
    """Make sure that a supervisor is up or coming up; returns at once."""
    _starting[:] = [p for p in _starting if p.poll() is None]
    key = key or wire.supervisor_key()
    if _starting or probe(home.supervisor / f"{key}.lock") == "held":
        return
    log = os.open(home.supervisor / "host.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        argv = [sys.executable, "-P", "-m", "subagents_nb.supervisor.host", str(home.root), key]
        _starting.append(
            _popen(argv, cwd="/", environ=_host_environ(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        )
    except OSError:
        pass  # a cold start serves as well, and says what is wrong if it fails too
    finally:
        os.close(log)


def _host_environ() -> dict[str, str]:
    # Secrets and the user's variables come with each launch over the socket; the supervisor itself holds none.
    from subagents_nb.domain.environment import runner_environ, tool_environ

    return tool_environ(runner_environ(os.environ))


def _start_warm(connection: socket.socket, run_id: str, token: str, cwd: str, environ: Mapping[str, str]) -> Started:
    request = {"op": "launch", "run_id": run_id, "token": token, "cwd": cwd, "environ": dict(environ)}
    try:
        connection.sendall(wire.encode(request))
        reply = wire.decode(wire.read_line(connection) or b"{}")
    except OSError as error:
        connection.close()
        raise LaunchError(f"The supervisor did not answer ({error}).") from error
    return _started(reply, connection.sendall, connection.close)


def _start_cold(home: StoreHome, run_id: str, token: str, cwd: str, environ: Mapping[str, str]) -> Started:
    argv = [sys.executable, "-P", "-m", "subagents_nb.supervisor.shim", str(home.root), run_id, token]
    try:
        process = _popen(
            argv, cwd=cwd, environ=dict(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise LaunchError(f"No process could be started ({error.strerror}).") from error
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise LaunchError("No process could be started (it has no pipes).")
    line = process.stdout.readline()
    process.stdout.close()
    said = b"" if line else process.stderr.read(4000)
    process.stderr.close()
    if os.name == "posix":
        process.wait()
    if not line:
        process.stdin.close()
        words = said.decode("utf-8", "replace").strip().splitlines()
        raise LaunchError(f"The run's process could not be started: {words[-1] if words else 'it said nothing'}.")
    barrier = process.stdin

    def send(data: bytes) -> None:
        barrier.write(data)
        barrier.flush()

    def close() -> None:
        with contextlib.suppress(OSError):
            barrier.close()

    return _started(wire.decode(line), send, close)


def _started(reply: dict[str, Any], send: Callable[[bytes], None], close: Callable[[], None]) -> Started:
    if not reply.get("ok"):
        close()
        raise LaunchError(f"The supervisor could not start the run: {reply.get('error', 'it said nothing')}.")
    spawn: Literal["warm", "cold"] = "warm" if reply.get("spawn") == "warm" else "cold"
    return Started(int(reply["pid"]), reply.get("start_ticks"), spawn, send, close)


def _popen(argv: list[str], *, cwd: str | Path, environ: dict[str, str], **streams: Any) -> subprocess.Popen[bytes]:
    flags: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        detached = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        flags = {"creationflags": detached}
    return subprocess.Popen(argv, cwd=cwd, env=environ, close_fds=True, **flags, **streams)
