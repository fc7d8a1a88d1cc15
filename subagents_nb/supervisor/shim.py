"""The cold supervisor of one run: starts the runner in a fresh interpreter, waits for it, records how it ended.

Run as `python -m subagents_nb.supervisor.shim HOME RUN_ID TOKEN`. Its input is the barrier and goes to the runner; its
output is one line for the launcher: the runner's pid. It starts the runner before it imports anything heavy.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subagents_nb.store.layout import RunPaths

POSIX = os.name == "posix"
PLACE_VARIABLE = "SUBAGENTS_NB_PLACE"


def main(argv: list[str]) -> int:
    """Start the runner, tell who it is, stay until it ends."""
    home_text, run_id, token, *place = argv
    handed = tuple(int(handle) for handle in place)
    root = os.path.join(home_text, "runs", run_id)
    if os.path.islink(root):
        sys.exit("the run's directory is a link")
    if POSIX:
        if os.fork():
            return 0  # the launcher reaps this one at once; the shim belongs to nobody's kernel
        os.setsid()
        os.umask(0o077)
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    errors = os.open(os.path.join(root, "runner.err"), flags, 0o600)
    output = os.open(os.path.join(root, "runner.out"), flags, 0o600)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "subagents_nb.runner", root],
        stdout=output,
        stderr=errors,
        start_new_session=POSIX,
        pass_fds=handed,  # the place among the live runs is the runner's, not ours
        env={**os.environ, PLACE_VARIABLE: ",".join(place)},
    )
    for handle in handed:
        os.close(handle)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # the barrier's only reader is the runner now: it sees its launcher go away
    report_to = os.dup(1)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.write(report_to, b'{"ok": true, "spawn": "cold", "pid": %d}\n' % process.pid)
    os.close(report_to)
    return _watch(home_text, run_id, token, process)


def _watch(home_text: str, run_id: str, token: str, process: subprocess.Popen[bytes]) -> int:
    import contextlib
    from pathlib import Path

    from subagents_nb.domain.records import ProcessRecord
    from subagents_nb.store.layout import StoreHome
    from subagents_nb.store.writer import RunWriter
    from subagents_nb.supervisor.ending import record_end, record_pending
    from subagents_nb.supervisor.identity import start_ticks
    from subagents_nb.supervisor.leftovers import Leftovers, end_leftovers, mark_of

    home = StoreHome(Path(home_text))
    paths = home.run(run_id)
    ticks = None
    with contextlib.suppress(PermissionError):
        ticks = start_ticks(process.pid)
    started = ProcessRecord(run_id=run_id, state="pending", spawn="cold", token=token, pid=process.pid)
    with contextlib.suppress(FileNotFoundError):  # the launch was rolled back meanwhile
        started = record_pending(RunWriter(paths), spawn="cold", token=token, pid=process.pid, ticks=ticks)
    left = Leftovers()
    if POSIX:
        _await_end(paths, run_id, process.pid)
        left = end_leftovers(process.pid, mark_of(run_id, token), since=ticks)
    code = process.wait()
    record_end(
        home,
        run_id,
        started=started,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        left=left,
        judge="shim",
    )
    return 0


def _await_end(paths: RunPaths, run_id: str, pid: int) -> None:
    """Wait for the runner's end, without reaping it; one that does not hear that it shall stop is ended."""
    import select
    import signal

    from subagents_nb.supervisor.lastresort import LOOK_S, LastResort

    last_resort = LastResort()
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):  # no descriptors of processes here: nothing to do but wait
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return
    while not select.select([handle], [], [], LOOK_S)[0]:
        if last_resort.due({run_id: paths}):
            os.kill(pid, signal.SIGKILL)
    os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
