"""Try what runs rely on: whether locks hold here, and whether a supervisor answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from subagents_nb.domain.agents.environment import tool_environ
from subagents_nb.errors import LaunchError
from subagents_nb.store.files.lock import probe
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.socket_lines import Lines

_ASK_S = 2.0
# Takes the lock, says so, and holds it until it is let go.
_HOLD = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.flock(f,2|4); print('held',flush=True); sys.stdin.read()"


def lock_fault(path: Path) -> str:
    """Return why locks can't be trusted at this place, or nothing: a child takes one and lets it go by ending."""
    if os.name != "posix":
        return ""
    try:
        path.touch(0o600)
        argv = [sys.executable, "-I", "-S", "-c", _HOLD, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(argv, env=tool_environ(os.environ), **pipes) as child:  # type: ignore[call-overload]
            if child.stdout.readline() != b"held\n":
                return "a child process could not take a lock"
            if probe(path) != "held":
                return "a lock that a child process holds is not seen: this file system can't prove that runs live"
            child.communicate(timeout=_ASK_S)
        return "" if probe(path) == "free" else "a lock is still there after the process that held it ended"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"locks can't be tried: {error}"
    finally:
        path.unlink(missing_ok=True)


def ping(path: Path) -> int | None:
    """Return the pid of the supervisor behind a socket, or None if nobody answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ASK_S)
        lines = Lines(connection)
        try:
            with wire.SocketName(path) as address:
                connection.connect(address)
            lines.say(wire.encode({"op": "ping"}))
            return int(wire.decode(lines.hear(_ASK_S) or b"")["pid"])
        except (OSError, LaunchError, KeyError, ValueError):
            return None
