"""The way to a supervisor: which one it is, whether it is up, and what it answers. One that is missing is started."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.detached import Detached, supervisor_environ
from subagents_nb.store.processes.process_list import look
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.socket_lines import Lines

SPAWN_VARIABLE = "SUBAGENTS_NB_SPAWN"
ACK_S = 10.0
_WARM_WAIT_S = 60.0
_starting: list[Detached] = []

SpawnMode = Literal["auto", "warm", "cold"]


class SupervisorGone(LaunchError):
    """The warm supervisor ended before it answered."""


class SupervisorSilent(LaunchError):
    """The supervisor is there and answers nothing: it is frozen, or buried in work."""


def spawn_mode(environ: Mapping[str, str] = os.environ) -> SpawnMode:
    """Return how runners are started: `SUBAGENTS_NB_SPAWN`, else warm where forking is safe, else cold."""
    wanted = environ.get(SPAWN_VARIABLE, "auto")
    if wanted not in ("auto", "warm", "cold"):
        raise LaunchError(f"{SPAWN_VARIABLE} is {wanted!r}; it can be auto, warm or cold.")
    if wanted == "auto" and not sys.platform.startswith("linux"):
        return "cold"
    return wanted  # type: ignore[return-value]


def connect_queue(home: StoreHome) -> Lines:
    """Return the way to the supervisor that keeps the queue; starts it if it is missing.

    Raises:
        LaunchError: none came up.
    """
    lines = connect_queue_now(home, wait_s=_WARM_WAIT_S)
    if lines is None:
        raise LaunchError(f"No supervisor came up within {_WARM_WAIT_S:g} s; see {home.supervisor / 'host.log'}.")
    return lines


def connect_queue_now(home: StoreHome, *, wait_s: float = 0.0) -> Lines | None:
    """Return the way to the supervisor that keeps the queue if it is up by then; starts it if it is missing."""
    key = _owner_key(home)
    connection = _connect(home, key, wire.queue_path(home.supervisor, key), wait_s=wait_s)
    return None if connection is None else Lines(connection)


def ensure_queue_owner(home: StoreHome) -> None:
    """Make sure that a supervisor that can keep the queue is up or coming up; returns at once."""
    ensure_host(home, _owner_key(home))


def await_starters() -> None:
    """Wait until the supervisors that we started hold their locks, or have seen that others do."""
    for process in _starting:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ACK_S)


def _owner_key(home: StoreHome) -> str:
    """Return the key of the supervisor that shall keep the queue: one of the other kind stands in for a frozen one."""
    cold = spawn_mode() == "cold"
    key, other = host_key("cold" if cold else "warm"), host_key("warm" if cold else "cold")
    return other if frozen(home, key) is not None and frozen(home, other) is None else key


def frozen(home: StoreHome, key: str) -> int | None:
    """Return the pid of the supervisor of a key if a signal has stopped it; None if it runs, or can't be seen."""
    try:
        pid, ticks = map(int, DISK.read(home.supervisor / f"{key}.lock").split())
        process = look(pid)
    except (OSError, ValueError, Unreadable):
        return None
    return pid if process is not None and (process.ticks, process.state) == (ticks, "T") else None


def connect(home: StoreHome) -> Lines | None:
    """Return the way to a warm supervisor, or None where a cold start is due. Starts one that is missing.

    Raises:
        LaunchError: `warm` was asked for and none came up.
    """
    mode = spawn_mode()
    if mode == "cold":
        return None
    key = host_key("warm")
    if (stopped := frozen(home, key)) is not None:
        if mode == "auto":
            return None
        raise LaunchError(f"The supervisor is stopped. Let it go on with `kill -CONT {stopped}`, or end it.")
    connection = _connect(home, key, home.supervisor / f"{key}.sock", wait_s=_WARM_WAIT_S if mode == "warm" else 0.0)
    if connection is None and mode == "warm":
        raise LaunchError(f"No supervisor came up within {_WARM_WAIT_S:g} s; see {home.supervisor / 'host.log'}.")
    return Lines(connection) if connection is not None else None


def _connect(home: StoreHome, key: str, path: Path, *, wait_s: float) -> socket.socket | None:
    deadline = time.monotonic() + wait_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ACK_S)
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


def host_key(mode: Literal["warm", "cold"]) -> str:
    """Return the key of the supervisor that starts runners in this way."""
    return f"{wire.supervisor_key()}-{mode}"


def ensure_host(home: StoreHome, key: str) -> None:
    """Make sure that a supervisor is up or coming up; returns at once."""
    _starting[:] = [p for p in _starting if p.poll() is None]
    if _starting or probe(home.supervisor / f"{key}.lock") == "held":
        return
    log = _fresh_log(home.supervisor / "host.log")
    try:
        module = "subagents_nb.supervisor.host"
        argv = [sys.executable, "-P", "-m", module, str(home.root), key, key.rpartition("-")[2]]
        _starting.append(
            Detached(argv, cwd="/", environ=supervisor_environ(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        )
    except OSError:
        pass  # a cold start serves as well, and says what is wrong if it fails too
    finally:
        os.close(log)


def _fresh_log(path: Path) -> int:
    """Open the log of the next supervisor. What the last one left, why it crashed say, stays beside it as `.1`."""
    with contextlib.suppress(OSError):
        if path.lstat().st_size > 0:  # one that had nothing to say must not push out one that had
            path.replace(path.with_name(f"{path.name}.1"))
    return DISK.open(path, os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_WRONLY)


def ask(lines: Lines, request: dict[str, Any], *, place: int | None = None, within_s: float = ACK_S) -> dict[str, Any]:
    """Send a request to the warm supervisor and return its reply.

    Raises:
        SupervisorGone: it ended before it answered.
        SupervisorSilent: it said nothing in time.
        LaunchError: it refused.
    """
    try:
        lines.say(wire.encode(request), place=place)
        line = lines.reply(within_s)
    except OSError as error:
        lines.close()
        raise SupervisorGone(f"The supervisor did not answer ({error}).") from error
    if line is None:
        lines.close()
        if lines.ended:
            raise SupervisorGone("The supervisor ended before it answered.")
        raise SupervisorSilent(f"The supervisor did not answer within {within_s:g} s.")
    reply = wire.decode(line)
    if not reply.get("ok"):
        lines.close()
        raise LaunchError(f"The supervisor could not start the run: {reply.get('error', 'it said nothing')}.")
    return reply
