"""How launchers and supervisors talk: one JSON object a line over a private socket or pipe."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import select
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from subagents_nb.errors import LaunchError
from subagents_nb.store.files.socket_name import SocketName as SocketName
from subagents_nb.version import __version__

MAX_MESSAGE = 4 * 1024 * 1024
PROCEED = "proceed"


@functools.cache
def supervisor_key() -> str:
    """Return what a supervisor must share with its launchers: interpreter, version, and the very code on disk.

    An edited checkout has another key, so a warm process never runs stale code.
    """
    return digest_of_code()


def digest_of_code() -> str:
    """Digest the interpreter, the version and the code that is on disk now, by sizes and times."""
    digest = hashlib.sha256(f"{sys.executable}|{sys.version}|{__version__}".encode())
    for folder, folders, files in os.walk(Path(__file__).parents[2]):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py")):
            with contextlib.suppress(FileNotFoundError):  # an upgrade is just taking it away
                info = os.stat(path)
                digest.update(f"{path}:{info.st_size}:{info.st_mtime_ns}".encode())
    pydantic_ai = [p for p in sys.path if (Path(p) / "pydantic_ai").is_dir()]
    if pydantic_ai:
        digest.update(str((Path(pydantic_ai[0]) / "pydantic_ai").stat().st_mtime_ns).encode())
    return digest.hexdigest()[:12]


def queue_path(directory: Path, key: str) -> Path:
    """Return the socket on which a supervisor takes runs into its queue, from before it can start any."""
    return directory / f"{key}.queue"


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as one line, without its end."""
    return json.dumps(message).encode()


def decode(line: bytes) -> dict[str, Any]:
    """Return the message of one line.

    Raises:
        LaunchError: it is no message.
    """
    try:
        message = json.loads(line)
    except ValueError as error:
        raise LaunchError("The supervisor sent something that is no message.") from error
    if not isinstance(message, dict):
        raise LaunchError("The supervisor sent something that is no message.")
    return message


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user at the other end, or None where the platform doesn't tell: unix(7)."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(uid)


def is_deserted(connection: socket.socket) -> bool:
    """Say whether the other end has closed: whoever asks says nothing more before it has its answer."""
    try:
        return bool(select.select([connection], [], [], 0)[0]) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True
