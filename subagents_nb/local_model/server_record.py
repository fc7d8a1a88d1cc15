"""What clients and the server process agree on: where the files are, and what `server.json` says.

<home>/local-model/server.json    who serves, where, and the key; readable by the user alone
                   server.log     what the server process printed
                   server.lock    held while a server is started, stopped or leaves by itself
                   last-used      touched by each client; its modification time keeps the server up
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from subagents_nb.signals import stat_of

MODEL_ALIAS = "smollm2-135m"
HOST = "127.0.0.1"
WINDOW_TOKENS = 2048  # what the model can read at once, its answer included


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the local model answers, in the OpenAI dialect, under the model name `smollm2-135m`."""

    # Ends in /v1, as OpenAI clients want it.
    base_url: str
    api_key: str = field(repr=False)
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """One server process, as it wrote itself down."""

    pid: int
    # Kernel ticks from boot to the start of the process: tells it from a later process with the same pid.
    # None where the system has no /proc.
    start_ticks: int | None
    port: int
    api_key: str = field(repr=False)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(base_url=f"http://{HOST}:{self.port}/v1", api_key=self.api_key, pid=self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPaths:
    """Every path of this package below a home directory."""

    directory: Path

    @classmethod
    def under(cls, home: Path) -> ServerPaths:
        return cls(directory=home.absolute() / "local-model")

    @property
    def record(self) -> Path:
        return self.directory / "server.json"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def lock(self) -> Path:
        return self.directory / "server.lock"

    @property
    def last_used(self) -> Path:
        return self.directory / "last-used"


def write_record(path: Path, record: ServerRecord) -> None:
    """Put the whole record in place at once, readable by its owner alone."""
    # mkstemp makes the file 0600 from the first moment on.
    handle, temporary = tempfile.mkstemp(prefix=".server-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(asdict(record), stream)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_record(path: Path) -> ServerRecord | None:
    """Read who serves. None when nobody wrote it down, or when it isn't a record of ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    match content:
        case {"pid": int(pid), "port": int(port), "api_key": str(key), "start_ticks": int() | None as ticks}:
            return ServerRecord(pid=pid, port=port, api_key=key, start_ticks=ticks)
        case _:
            return None


def remove_record_of(path: Path, pid: int) -> None:
    """Remove the record when it names this process, and leave anybody else's alone."""
    record = read_record(path)
    if record is not None and record.pid == pid:
        path.unlink(missing_ok=True)


def read_start_ticks(pid: int) -> int | None:
    """Kernel ticks from boot to the start of a live process; None when it is gone, a zombie, or there is no /proc."""
    try:
        fields = stat_of(pid)
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_running(record: ServerRecord) -> bool | None:
    """Tell whether the very process that wrote the record lives; None where the system can't say."""
    if record.start_ticks is None or not Path("/proc/self/stat").exists():
        return None
    return read_start_ticks(record.pid) == record.start_ticks
