"""Tell the person who is away: a command of their settings, with what happened on its standard input."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from subagents_nb.domain.environment import NO_RUN, RUN_MARK, tool_environ
from subagents_nb.domain.words import one_line, plain

_told: list[subprocess.Popen[bytes]] = []


def notices_at_work() -> set[int]:
    """Return the pids of the commands that this process started and that have not ended."""
    _told[:] = [process for process in _told if process.poll() is None]
    return {process.pid for process in _told}


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
    notices_at_work()  # those that have ended are reaped by this
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**kept, RUN_MARK: NO_RUN},
        start_new_session=True,
    )
    _told.append(process)
    with contextlib.suppress(BrokenPipeError):  # it need not listen to be a sign
        if process.stdin is not None:
            with process.stdin as pipe:
                pipe.write(json.dumps({"run_id": run_id, "name": one_line(name), "text": plain(text)}).encode())
    return process
