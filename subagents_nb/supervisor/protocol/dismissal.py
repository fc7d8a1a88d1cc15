"""Send the supervisors of a store away; the runs that they watch go on."""

from __future__ import annotations

import contextlib
import socket
import time

from subagents_nb.errors import LaunchError
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.reaching import ask
from subagents_nb.supervisor.protocol.socket_lines import Lines


def dismiss(home: StoreHome, *, within_s: float = 10.0) -> bool:
    """Ask every supervisor to leave, those that are still coming up too, and wait; say whether all have left."""
    deadline = time.monotonic() + within_s
    locks = [path for path in home.supervisor.glob("*.lock") if probe(path) == "held"]
    while locks and time.monotonic() < deadline:
        for lock in locks:
            with contextlib.suppress(OSError, LaunchError), socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1.0)
                with wire.SocketName(lock.with_suffix(".sock")) as address:
                    connection.connect(address)
                ask(Lines(connection), {"op": "leave"})
        time.sleep(0.02)
        locks = [path for path in locks if probe(path) == "held"]
    return not locks
