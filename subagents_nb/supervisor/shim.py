"""The cold supervisor of one run: starts the runner in a fresh interpreter, waits for it, records how it ended.

Run as `python -m subagents_nb.supervisor.shim HOME RUN_ID TOKEN`. Its input is the barrier and goes to the runner; its
output is one line for the launcher: the runner's pid. It starts the runner before it imports anything heavy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subagents_nb.domain.runs.exit_report import ProcessRecord
    from subagents_nb.store.layout import RunPaths, StoreHome

POSIX = os.name == "posix"
PLACE_VARIABLE = "SUBAGENTS_NB_PLACE"
SECRETS_VARIABLE = "SUBAGENTS_NB_ENVIRON"  # see `fresh`
GIVE_UP_S = 600.0


def main(argv: list[str]) -> int:
    """Start the runner, tell who it is, stay until it ends."""
    home_text, run_id, token, *place = argv
    handed = tuple(int(handle) for handle in (*place, *filter(None, [os.environ.get(SECRETS_VARIABLE)])))
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
        pass_fds=handed,  # the place among the live runs, and what it shall know, are the runner's and not ours
        env={**os.environ, PLACE_VARIABLE: ",".join(place)},
    )
    since = time.monotonic()
    for handle in handed:
        os.close(handle)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # the barrier's only reader is the runner now: it sees its launcher go away
    report_to = os.dup(1)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.write(report_to, b'{"ok": true, "spawn": "cold", "pid": %d}\n' % process.pid)
    os.close(report_to)
    return _watch(home_text, run_id, token, process, since)


def _watch(home_text: str, run_id: str, token: str, process: subprocess.Popen[bytes], since: float) -> int:
    # All that is needed up to the end: when it comes there may be no descriptor left to import by.
    import contextlib
    from pathlib import Path

    from subagents_nb.domain.runs.exit_report import ProcessRecord
    from subagents_nb.prctl import adopt_orphans
    from subagents_nb.store.layout import StoreHome
    from subagents_nb.store.runs.writer import RunWriter
    from subagents_nb.store.waiting.hand_on import hand_on
    from subagents_nb.supervisor.ends.termination import record_pending
    from subagents_nb.supervisor.processes import backoff as _backoff  # noqa: F401
    from subagents_nb.supervisor.processes.identity import ticks_if_seen

    adopt_orphans()
    home = StoreHome(Path(home_text))
    paths = home.run(run_id)
    ticks = ticks_if_seen(process.pid)
    started = ProcessRecord(run_id=run_id, state="pending", spawn="cold", token=token, pid=process.pid)
    with contextlib.suppress(FileNotFoundError):  # the launch was rolled back meanwhile
        started = record_pending(RunWriter(paths), spawn="cold", token=token, pid=process.pid, ticks=ticks)
    if POSIX:
        _await_end(paths, run_id, process.pid, since)
        end = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        exited = end is None or end.si_code == os.CLD_EXITED
        status = end.si_status if end is not None else 0
    else:
        status, exited = process.wait(), True
    _record(home, started, exit_code=status if exited else None, signal=None if exited else status)
    process.wait()
    hand_on(home)  # a place is free, and who waits for it may have nobody who keeps its turn
    return 0


def _record(home: StoreHome, started: ProcessRecord, *, exit_code: int | None, signal: int | None) -> None:
    """Write down how the unreaped runner ended, as soon as the disk takes it; after ten minutes others have to."""
    from subagents_nb.store.processes.notice import without_notices
    from subagents_nb.store.processes.process_list import own_children
    from subagents_nb.supervisor.ends.termination import clear_up, judge_at_once, record_end
    from subagents_nb.supervisor.processes.backoff import Backoff
    from subagents_nb.supervisor.processes.orphans import Orphans

    backoff, pid, run_id = Backoff(), started.pid, started.run_id
    orphans: Orphans | None = None if POSIX else Orphans()

    def attempt() -> None:
        nonlocal orphans
        if orphans is None:
            judge_at_once(home, run_id, exit_code=exit_code, signal=signal, judge="shim")
            orphans = clear_up(home, run_id, started, leader=pid, fallen=lambda: without_notices(own_children()))
        record_end(
            home,
            run_id,
            started=started,
            exit_code=exit_code,
            signal=signal,
            orphans=orphans,
            judge="shim",
        )

    deadline = time.monotonic() + GIVE_UP_S
    while (wrong := backoff.tried(attempt)) is not None and time.monotonic() < deadline:
        if wrong:
            print(f"its end was not recorded: {wrong}", file=sys.stderr, flush=True)  # noqa: T201
        time.sleep(backoff.left_s)


def _await_end(paths: RunPaths, run_id: str, pid: int, since: float) -> None:
    """Wait for the runner's end, without reaping it; one that does not hear that it shall stop is ended.

    So is one that does not keep its deadline. `since` is when it was started.
    """
    import select

    from subagents_nb.signals import KILL, signal_child
    from subagents_nb.supervisor.ends.kill_escalation import LOOK_S, KillEscalation

    escalation = KillEscalation(since=since)
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):  # no descriptors of processes here: nothing to do but wait
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return
    while not select.select([handle], [], [], LOOK_S)[0]:
        if escalation.due({run_id: paths}):
            signal_child(pid, KILL)
    os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
