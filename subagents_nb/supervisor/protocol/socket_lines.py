"""Lines over a socket, one at a time, with a limit in time for each."""

from __future__ import annotations

import contextlib
import socket
import time

_MAX_BYTES = 4 * 1024 * 1024


class Lines:
    """The launcher's end of the channel to a supervisor and, through it, to the runner it starts."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = b""
        self._held: list[bytes] = []
        self.ended = False  # the other side has closed

    def reply(self, within_s: float) -> bytes | None:
        """Return the supervisor's next line. A runner that speaks before it on the same channel is heard later."""
        deadline = time.monotonic() + within_s
        early: list[bytes] = []
        while True:
            line = self.read_line(deadline - time.monotonic())
            if line is None or line.startswith(b"{"):
                self._held = early + self._held
                return line
            early.append(line)

    def read_line(self, within_s: float) -> bytes | None:
        """Return the next line, or None if the other side closed or said nothing in time."""
        if self._held:
            return self._held.pop(0)
        deadline = time.monotonic() + within_s
        while b"\n" not in self._data:
            left = deadline - time.monotonic()
            if left <= 0 or len(self._data) > _MAX_BYTES:
                return None
            self._connection.settimeout(left)
            try:
                part = self._connection.recv(65536)
            except TimeoutError:
                return None
            except OSError:
                part = b""
            if not part:
                self.ended = True
                return None
            self._data += part
        line, _, self._data = self._data.partition(b"\n")
        return line

    def say(self, line: bytes, *, place: int | None = None) -> None:
        """Send one line, with the descriptor of a place to be taken over.

        Raises:
            OSError: nobody is there any more.
        """
        self._connection.settimeout(10.0)
        if place is None:
            self._connection.sendall(line + b"\n")
            return
        sent = socket.send_fds(self._connection, [line + b"\n"], [place])
        self._connection.sendall((line + b"\n")[sent:])

    def close(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            self._connection.close()
