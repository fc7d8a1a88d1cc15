"""Processes that outlive who started them: supervisors, runners, notices."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK, exec_environ, runner_environ
from subagents_nb.store.layout import StoreHome

_TAKEOVER = "subagents_nb.supervisor.warm.takeover"  # known here by its name only
_UP_S = 10.0


class Detached(subprocess.Popen[bytes]):
    """A process of its own session, which is meant to outlive us: `Popen` would call that a leak when it is dropped."""

    def __init__(
        self, argv: Sequence[str], *, environ: Mapping[str, str], cwd: str | Path | None = None, **streams: Any
    ) -> None:
        flags: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            detached = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
            flags = {"creationflags": detached}
        super().__init__(list(argv), cwd=cwd, env=dict(environ), close_fds=True, **flags, **streams)

    def __del__(self) -> None:
        # Who is at work yet is kept by this to be reaped: only the words are left out.
        super().__del__(_warn=_say_nothing)  # type: ignore[call-arg]


def supervisor_environ() -> dict[str, str]:
    """Return the variables of a supervisor, whoever starts it: without secrets, and of no run.

    Secrets and the person's variables come with each launch, over its socket.
    """
    return {**exec_environ(runner_environ(os.environ))[0], RUN_MARK: NO_RUN}


def bring_supervisor_up(home: StoreHome, *, now: bool = False) -> None:
    """Have a supervisor come up, if runs wait or one is needed `now`; returns when it is there to stay, or can't be."""
    argv = [sys.executable, "-P", "-m", _TAKEOVER, str(home.root), *(["now"] if now else [])]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        Detached(argv, environ=supervisor_environ(), cwd="/", **quiet).wait(_UP_S)


def _say_nothing(*_words: Any, **_more: Any) -> None:
    """Take the warning of a `Popen`."""
