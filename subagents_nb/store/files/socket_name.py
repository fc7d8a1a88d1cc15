"""The name of a socket file, which may not be long: unix(7)."""

from __future__ import annotations

import os
from pathlib import Path


class SocketName:
    """The address of a socket file at any depth: where the path is too long, unix(7), through that of its directory."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        self.address = str(path)
        if len(os.fsencode(path)) > 100:
            self._handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            self.address = f"/proc/self/fd/{self._handle}/{path.name}"

    def __enter__(self) -> str:
        return self.address

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
