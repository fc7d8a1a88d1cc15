"""Tell a supervisor that a run has asked for a child, over its private socket.

The variables of the child go this way, for they are never on disk. Whichever supervisor is up will do: it starts the
child, and sees it end. If none is, one is started.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subagents_nb.store.files.lock import probe
from subagents_nb.store.files.socket_name import SocketName
from subagents_nb.store.layout import StoreHome

_ANSWER_S = 10.0


class NobodyThere(OSError):
    """No supervisor answers."""


def ring(home: StoreHome, run_id: str, ask_id: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Have a supervisor answer an ask; return what it says. Blocks until it has.

    Raises:
        NobodyThere: none is up; the ask stays where it is.
    """
    message = {"op": "nested", "run_id": run_id, "ask_id": ask_id, "environ": dict(environ)}
    line = json.dumps(message).encode() + b"\n"
    for path in _sockets(home):
        with contextlib.suppress(OSError, ValueError):
            return _say(path, line)
    raise NobodyThere("no supervisor answers")


def _sockets(home: StoreHome) -> list[Path]:
    """Return the sockets of the supervisors that are up, those that fork before those that don't."""
    up = [path for path in sorted(home.supervisor.glob("*.lock"), reverse=True) if probe(path) == "held"]
    return [path.with_suffix(".queue") for path in up]


def _say(path: Path, line: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, SocketName(path) as name:
        connection.settimeout(_ANSWER_S)
        connection.connect(name)
        connection.sendall(line)
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    if not isinstance(answer, dict):
        raise ValueError("that is no answer")
    return answer
