"""Tell the person who is away: a command of their settings, with what happened on its standard input."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK, tool_environ
from subagents_nb.domain.values.words import one_line, plain
from subagents_nb.store.processes.detached import Detached
from subagents_nb.store.processes.process_list import look

_told: list[subprocess.Popen[bytes]] = []
_sessions: deque[int] = deque(maxlen=200)  # of what these commands leave at work


def without_notices(pids: set[int]) -> set[int]:
    """Return which of these children of this process are no command that it started here, nor of a session of one."""
    _told[:] = [process for process in _told if process.poll() is None]
    rest = pids - {process.pid for process in _told}
    if not _sessions:
        return rest
    return {pid for pid in rest if (process := look(pid)) is not None and process.session not in _sessions}


def send_notice(
    command: Sequence[str], *, run_id: str, name: str, text: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes] | None:
    """Start the command and go on; it gets one JSON object on its input. None: there is no command to start.

    It sees `environ`, or the variables of this process that a tool may see, and belongs to no run: it may outlive it.

    Raises:
        OSError: it can't be started.
    """
    if not command:
        return None
    kept = tool_environ(os.environ) if environ is None else environ
    without_notices(set())  # those that have ended are reaped by this
    process = Detached(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        environ={**kept, RUN_MARK: f"{NO_RUN}:{run_id}"},  # of no run, but told of by this one: see `outliving`
    )
    _told.append(process)
    _sessions.append(process.pid)
    with contextlib.suppress(BrokenPipeError):  # it need not listen to be a sign
        if process.stdin is not None:
            with process.stdin as pipe:
                pipe.write(json.dumps({"run_id": run_id, "name": one_line(name), "text": plain(text)}).encode())
    return process
