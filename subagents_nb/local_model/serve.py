"""The server process: `python -m subagents_nb.local_model.serve HOME`.

It says what becomes of it in words on its first stdout, one a line, then closes that and goes on alone:
`pid N`, then `ready` or `failed REASON`. Silence and a closed pipe mean that it died.

It leaves when it was idle for long, on SIGTERM, and when `server.json` no longer names it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from subagents_nb.local_model.server_record import (
    HOST,
    MODEL_ALIAS,
    WINDOW_TOKENS,
    ServerPaths,
    ServerRecord,
    read_record,
    read_start_ticks,
    remove_record_of,
    write_record,
)
from subagents_nb.local_model.weights import weights_path
from subagents_nb.prctl import keep_memory_private

IDLE_VARIABLE = "SUBAGENTS_NB_LOCAL_IDLE_S"
_IDLE_S = 900.0
_LOOK_EVERY_S = 2.0
_SLOTS = 4
# Each slot owns its share, so that a run's room never depends on its neighbours.
_CONTEXT_TOKENS = _SLOTS * WINDOW_TOKENS
# Requests beyond the slots wait in line, and each holds a thread; the check by `ensure` must still find a free one.
_HTTP_THREADS = 32
# The default is 8 GB. One slot's full prompt takes 47 MB.
_PROMPT_CACHE_MIB = 96

# Whoever lets go of the engine runs its destructor, which joins threads that wait for connections: for ever, at times,
# see yhirose/cpp-httplib#937.
_engines: list[Any] = []


def main(home: Path) -> int:
    """Serve until there is no reason to; return the exit status."""
    keep_memory_private()
    voice = _leave_the_parent()
    places = ServerPaths.under(home)
    key = secrets.token_urlsafe(32)
    try:
        server = _load(key)
    except _Unstartable as error:
        _say(voice, f"failed {error}", last=True)
        return 1
    except RuntimeError as error:
        # The starter shows the end of the log, where the engine's reasons are.
        _await_log()
        sys.stderr.write(f"The engine refused to start: {error}\n")
        return 1
    _engines.append(server)
    port = int(server.listening_address.rpartition(":")[2])
    record = ServerRecord(pid=os.getpid(), start_ticks=read_start_ticks(os.getpid()), port=port, api_key=key)
    try:
        signal.signal(signal.SIGTERM, _on_terminate)
        write_record(places.record, record)
        _say(voice, "ready", last=True)
        # Not to hold a directory of the user's as the working directory.
        with contextlib.suppress(OSError):
            os.chdir(places.directory)
        _stay_while_needed(places, record, server, idle_s=_read_idle_s())
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        remove_record_of(places.record, record.pid)
    return 0


def _await_log(still_s: float = 0.3, most_s: float = 3.0) -> None:
    """Wait until the engine's log has come to rest: a thread of its own writes it, which no exit waits for."""
    size, still, deadline = -1, 0.0, time.monotonic() + most_s
    while time.monotonic() < min(still or deadline, deadline):
        if (now := os.fstat(2).st_size) != size:
            size, still = now, time.monotonic() + still_s
        time.sleep(0.02)


class _Unstartable(Exception):
    """Something is missing; the text says what to do."""


def _leave_the_parent() -> int:
    """Become nobody's child, so that no runner has to reap us; return where to speak to the starter."""
    voice = os.dup(1)
    os.dup2(2, 1)
    if hasattr(os, "fork") and os.fork() != 0:
        os._exit(0)
    _say(voice, f"pid {os.getpid()}")
    return voice


def _say(voice: int, word: str, *, last: bool = False) -> None:
    # The starter may be gone. Others may still want the server.
    with contextlib.suppress(OSError):
        os.write(voice, word.encode() + b"\n")
    if last:
        os.close(voice)


def _load(key: str) -> Any:
    """Load the model and listen on a free port of this machine; return the engine's server."""
    try:
        import xllamacpp
    except ImportError as error:
        raise _Unstartable(
            f'The local model needs an extra: run `pip install "subagents-nb[local]"` ({error}).'
        ) from error
    path = weights_path()
    if path is None:
        raise _Unstartable("The local model is not installed: run `subagents-nb local-model install`.")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {MODEL_ALIAS}
    params.hostnames = [HOST]
    params.port = 0
    params.api_keys = [key]
    # No page in a browser has business here.
    params.cors_origins = ""
    params.ui = False
    params.endpoint_metrics = True
    params.n_threads_http = _HTTP_THREADS
    params.n_parallel = _SLOTS
    params.n_ctx = _CONTEXT_TOKENS
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.warmup = False
    params.use_jinja = True
    params.verbosity = 1
    cores = _count_cores()
    # One run at a time: a second thread gains little, and the notebook's kernel needs a core.
    params.cpuparams.n_threads = min(4, max(1, cores - 1))
    # Prompts and several runs at once: here every core counts, nearly twofold from one to two.
    params.cpuparams_batch.n_threads = min(8, cores)
    return xllamacpp.Server(params)


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_idle_s() -> float:
    try:
        return max(0.5, float(os.environ.get(IDLE_VARIABLE, _IDLE_S)))
    except ValueError:
        return _IDLE_S


def _stay_while_needed(places: ServerPaths, record: ServerRecord, server: Any, *, idle_s: float) -> None:
    seen: object = None
    since = time.monotonic()
    while True:
        time.sleep(min(_LOOK_EVERY_S, idle_s / 4))
        activity, busy = _look(places, server)
        # Also when the file is gone, with its home or by somebody's hand: nobody could find us.
        if not busy and read_record(places.record) != record:
            return
        if busy or activity != seen:
            seen, since = activity, time.monotonic()
        elif time.monotonic() - since >= idle_s and _unlist(places, record, server, seen):
            return


def _look(places: ServerPaths, server: Any) -> tuple[object, bool]:
    """What changes with each use of the server, and whether a request is being served now."""
    numbers = dict(re.findall(r"^llamacpp:(\w+) (\S+)$", server.handle_metrics(), re.MULTILINE))
    busy = any(float(numbers.get(name, 0)) > 0 for name in ("requests_processing", "requests_deferred"))
    try:
        touched = places.last_used.stat().st_mtime_ns
    except OSError:
        touched = 0
    counted = [numbers.get(name) for name in ("prompt_tokens_total", "tokens_predicted_total", "n_decode_total")]
    return (touched, *counted), busy


def _unlist(places: ServerPaths, record: ServerRecord, server: Any, seen: object) -> bool:
    """Take the record away unless somebody came in this moment; True when it is time to leave.

    Clients touch `last-used` before they read the record, so one who still read it is seen here.
    """
    try:
        with FileLock(places.lock, blocking=False):
            remove_record_of(places.record, record.pid)
            activity, busy = _look(places, server)
            if busy or activity != seen:
                write_record(places.record, record)
                return False
            return True
    except Timeout:
        return False


def _on_terminate(*_: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    try:
        status = main(Path(sys.argv[1]))
    except SystemExit:
        status = 0
    sys.stderr.flush()
    os._exit(status)  # without the engine's destructor
