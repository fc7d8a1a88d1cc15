"""Start a runner, warm or cold, and hold its barrier: it does nothing before `proceed`."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from subagents_nb.domain.environment import NO_RUN, RUN_MARK
from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.signals import KILL, signal_child
from subagents_nb.store.disk import DISK
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.lock import probe
from subagents_nb.store.processes import look
from subagents_nb.supervisor import wire
from subagents_nb.supervisor.exchange import (
    STAGE_S,
    RunnerSilent,
    await_death,
    end_process,
    gone,
    is_of_launch,
    own_up,
    stage,
)
from subagents_nb.supervisor.fresh import secrets_for
from subagents_nb.supervisor.identity import ticks_if_seen
from subagents_nb.supervisor.leftovers import mark_of
from subagents_nb.supervisor.lines import Lines

SPAWN_VARIABLE = "SUBAGENTS_NB_SPAWN"
_ACK_S, _WARM_ACK_S = 10.0, 4.0  # a cold start instead takes a second: no need to wait for long
_WARM_WAIT_S = 60.0
_ABANDON_S = 0.5
_starting: list[subprocess.Popen[bytes]] = []

SpawnMode = Literal["auto", "warm", "cold"]


class SupervisorGone(LaunchError):
    """The warm supervisor ended before it answered."""


class SupervisorSilent(LaunchError):
    """The supervisor is there and answers nothing: it is frozen, or buried in work."""


@dataclass(frozen=True, slots=True)
class Started:
    """A runner that waits at its barrier. Call exactly one of `proceed` and `abandon`."""

    pid: int
    start_ticks: int | None
    spawn: Literal["warm", "cold"]
    _lines: Lines
    _proved: Callable[[], bool]
    _paths: RunPaths

    def revive(self, token: str, *, within_s: float = STAGE_S) -> None:
        """Go through ready, ack, acknowledged, confirm, confirmed with a runner that goes on from a session.

        Raises:
            RunnerSilent: it said nothing for so long.
            LaunchError: it ended, or another run holds the session.
        """
        for wanted, answer in (("ready", "ack"), ("acknowledged", "confirm"), ("confirmed", None)):
            heard = self._lines.hear(within_s)
            if heard is None and self._lines.ended:
                raise gone(self._paths, token, wanted)
            if heard is None:
                raise RunnerSilent(f"The run's process was silent for {within_s:g} s before it was {wanted}.")
            stage(heard, wanted, token)
            if answer is not None:
                self._say(f"{answer} {token}")

    def proceed(self, token: str) -> None:
        """Let the runner work: who owns it is on disk now.

        Raises:
            LaunchError: it is gone already.
        """
        try:
            self._say(f"{wire.PROCEED} {token}")
        finally:
            self._lines.close()

    def abandon(self, error: BaseException | None = None) -> bool:
        """End a runner that shall not begin, because of `error`; say whether its end was observed."""
        self._lines.close()  # it sees its launcher go away and ends by itself
        if not isinstance(error, RunnerSilent) and await_death(self.pid, self.start_ticks, _ABANDON_S):
            return True
        if error is not None:
            own_up(self._paths, error)
        return end_process(self.pid, self.start_ticks, proved=self._proved)

    def _say(self, line: str) -> None:
        try:
            self._lines.say(line.encode())
        except OSError as error:
            raise LaunchError("The run's process ended before it could be told to begin.") from error


def spawn_mode(environ: Mapping[str, str] = os.environ) -> SpawnMode:
    """Return how runners are started: `SUBAGENTS_NB_SPAWN`, else warm where forking is safe, else cold."""
    wanted = environ.get(SPAWN_VARIABLE, "auto")
    if wanted not in ("auto", "warm", "cold"):
        raise LaunchError(f"{SPAWN_VARIABLE} is {wanted!r}; it can be auto, warm or cold.")
    if wanted == "auto" and not sys.platform.startswith("linux"):
        return "cold"
    return wanted  # type: ignore[return-value]


def start_runner(
    home: StoreHome, *, run_id: str, token: str, cwd: str, environ: Mapping[str, str], place: int | None = None
) -> Started:
    """Start the runner of a stored plan; it waits at its barrier. A place is handed over to it and closed here.

    Warm where a supervisor listens and answers. In `auto` the first launch of all is cold while a supervisor warms up
    beside it, and so is one whose supervisor is frozen.

    Raises:
        LaunchError: no process could be started; none is left.
    """
    child_environ = {**environ, RUN_MARK: mark_of(run_id, token)}
    try:
        lines = connect(home)
        if lines is not None:
            silent = SupervisorSilent if spawn_mode() == "auto" else SupervisorGone
            with contextlib.suppress(SupervisorGone, silent):
                return _start_warm(home, lines, run_id, token, cwd, child_environ, place)
            # It went away, or said nothing. Whatever it may still start sees its channel closed and does not begin.
        return _start_cold(home, run_id, token, cwd, child_environ, place)
    finally:
        if place is not None:
            os.close(place)


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
    key = _keeper_key(home)
    connection = _connect(home, key, wire.queue_path(home.supervisor, key), wait_s=wait_s)
    return None if connection is None else Lines(connection)


def ensure_keeper(home: StoreHome) -> None:
    """Make sure that a supervisor that can keep the queue is up or coming up; returns at once."""
    ensure_host(home, _keeper_key(home))


def await_starters() -> None:
    """Wait until the supervisors that we started hold their locks, or have seen that others do."""
    for process in _starting:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ACK_S)


def _keeper_key(home: StoreHome) -> str:
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
            _popen(argv, cwd="/", environ=_host_environ(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
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


def _host_environ() -> dict[str, str]:
    # Secrets and the user's variables come with each launch over the socket; the supervisor itself holds none.
    from subagents_nb.domain.environment import exec_environ, runner_environ

    return {
        **exec_environ(runner_environ(os.environ))[0],
        RUN_MARK: NO_RUN,
    }  # started from within a run, it outlives that run


def _start_warm(
    home: StoreHome, lines: Lines, run_id: str, token: str, cwd: str, environ: Mapping[str, str], place: int | None
) -> Started:
    request = {"op": "launch", "run_id": run_id, "token": token, "cwd": cwd, "environ": dict(environ)}
    within_s = _WARM_ACK_S if spawn_mode() == "auto" else _ACK_S
    reply = ask(lines, request, place=place, within_s=within_s)
    return _started(home.run(run_id), token, reply, "warm", lines)


def ask(lines: Lines, request: dict[str, Any], *, place: int | None = None, within_s: float = _ACK_S) -> dict[str, Any]:
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


def _start_cold(
    home: StoreHome, run_id: str, token: str, cwd: str, environ: dict[str, str], place: int | None
) -> Started:
    argv = [sys.executable, "-P", "-m", "subagents_nb.supervisor.shim", str(home.root), run_id, token]
    inherited = () if place is None else (place,)
    if place is not None:
        argv.append(str(place))
    ours, theirs = socket.socketpair()
    try:
        with theirs, secrets_for(environ, cwd) as secrets:
            os.stat(f"{cwd}{os.sep}.")  # it goes there when it has imported
            process = _popen(
                argv,
                cwd="/" if os.name == "posix" else cwd,
                environ=secrets.environ,
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*inherited, *secrets.handles),
            )
            with contextlib.suppress(OSError):  # it ended at once; what it said is read below
                secrets.send()
    except OSError as error:
        ours.close()
        raise LaunchError(f"No process could be started ({error.strerror}).") from error
    line, said = _first_words(process)
    if not line:
        ours.close()
        words = said.decode("utf-8", "replace").strip().splitlines()
        raise LaunchError(f"The run's process could not be started: {words[-1] if words else 'it said nothing'}.")
    return _started(home.run(run_id), token, wire.decode(line), "cold", Lines(ours))


def _first_words(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the shim's one line, and what it said on its error output if there was none. Reaps the starter."""
    if process.stdout is None or process.stderr is None:
        return b"", b""
    with process.stdout as stdout, process.stderr as stderr:
        if os.name == "posix" and not select.select([stdout], [], [], _ACK_S)[0]:
            signal_child(process.pid, KILL)
            process.wait()
            return b"", f"it said nothing for {_ACK_S:g} s".encode()
        line = stdout.readline()
        said = b"" if line else stderr.read(4000)
    if os.name == "posix":
        process.wait()
    return line, said


def _started(
    paths: RunPaths, token: str, reply: dict[str, Any], spawn: Literal["warm", "cold"], lines: Lines
) -> Started:
    pid = int(reply["pid"])
    return Started(pid, ticks_if_seen(pid), spawn, lines, functools.partial(is_of_launch, paths, pid, token), paths)


def _popen(argv: list[str], *, cwd: str | Path, environ: dict[str, str], **streams: Any) -> subprocess.Popen[bytes]:
    flags: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        detached = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        flags = {"creationflags": detached}
    return subprocess.Popen(argv, cwd=cwd, env=environ, close_fds=True, **flags, **streams)
