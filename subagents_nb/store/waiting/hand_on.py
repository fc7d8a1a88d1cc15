"""Hand the line on: whoever gives a place back sees that somebody keeps the turns of those that wait for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK, exec_environ, runner_environ
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.waiting.line import standing

_MODULE = "subagents_nb.supervisor.warm.takeover"  # known here by its name only
_WAIT_S = 10.0


def hand_on(home: StoreHome) -> None:
    """If runs wait and no supervisor is up, start one; it takes them over. Returns when it is there to stay."""
    if not standing(home) or any(probe(path) == "held" for path in home.supervisor.glob("*.lock")):
        return
    environ = {**exec_environ(runner_environ(os.environ))[0], RUN_MARK: NO_RUN}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        starter = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(home.root)],
            cwd="/",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        starter.wait(_WAIT_S)
