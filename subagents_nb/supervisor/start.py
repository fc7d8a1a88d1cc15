"""Start a runner, warm or cold, and hold its barrier: it does nothing before `proceed`."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.errors import LaunchError
from subagents_nb.signals import KILL, signal_child
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.processes.detached import Detached
from subagents_nb.supervisor.processes.fresh import secrets_for
from subagents_nb.supervisor.processes.identity import ticks_if_seen
from subagents_nb.supervisor.processes.orphans import mark_of
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.handshake import (
    STAGE_S,
    RunnerSilent,
    await_death,
    end_process,
    gone,
    is_of_launch,
    own_up,
    stage,
)
from subagents_nb.supervisor.protocol.reaching import (
    ACK_S,
    SupervisorGone,
    SupervisorSilent,
    ask,
    connect,
    spawn_mode,
)
from subagents_nb.supervisor.protocol.socket_lines import Lines

_WARM_ACK_S = 4.0  # a cold start instead takes a second: no need to wait for long
_ABANDON_S = 0.5


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
            line = self._lines.read_line(within_s)
            if line is None and self._lines.ended:
                raise gone(self._paths, token, wanted)
            if line is None:
                raise RunnerSilent(f"The run's process was silent for {within_s:g} s before it was {wanted}.")
            stage(line, wanted, token)
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


def _start_warm(
    home: StoreHome, lines: Lines, run_id: str, token: str, cwd: str, environ: Mapping[str, str], place: int | None
) -> Started:
    request = {"op": "launch", "run_id": run_id, "token": token, "cwd": cwd, "environ": dict(environ)}
    within_s = _WARM_ACK_S if spawn_mode() == "auto" else ACK_S
    reply = ask(lines, request, place=place, within_s=within_s)
    return _started(home.run(run_id), token, reply, "warm", lines)


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
            process = Detached(
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
    line, stderr_text = _first_words(process)
    if not line:
        ours.close()
        words = stderr_text.decode("utf-8", "replace").strip().splitlines()
        raise LaunchError(f"The run's process could not be started: {words[-1] if words else 'it said nothing'}.")
    return _started(home.run(run_id), token, wire.decode(line), "cold", Lines(ours))


def _first_words(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the shim's one line, and what it said on its error output if there was none. Reaps the starter."""
    if process.stdout is None or process.stderr is None:
        return b"", b""
    with process.stdout as stdout, process.stderr as stderr:
        if os.name == "posix" and not select.select([stdout], [], [], ACK_S)[0]:
            signal_child(process.pid, KILL)
            process.wait()
            return b"", f"it said nothing for {ACK_S:g} s".encode()
        line = stdout.readline()
        stderr_text = b"" if line else stderr.read(4000)
    if os.name == "posix":
        process.wait()
    return line, stderr_text


def _started(
    paths: RunPaths, token: str, reply: dict[str, Any], spawn: Literal["warm", "cold"], lines: Lines
) -> Started:
    pid = int(reply["pid"])
    return Started(pid, ticks_if_seen(pid), spawn, lines, functools.partial(is_of_launch, paths, pid, token), paths)
