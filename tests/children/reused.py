"""In a pid namespace of its own, of which this is the init process: give the pid of a dead runner to a stranger.

reused.py STORE ROUNDS. Prints a line for each round: what was judged, and how the stranger ended once it was let go.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import alive, make_plan, make_recovery, make_request, make_status, run_id, until

from subagents_nb import Run
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.errors import RequestError
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.files.lock import hold
from subagents_nb.supervisor.processes.identity import identify, start_ticks
from subagents_nb.supervisor.processes.orphans import end_run_processes, mark_of
from subagents_nb.supervisor.protocol.handshake import end_process
from subagents_nb.supervisor.warm.adoption import Reattached

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
STOPS = 50
SLEEPER = "import sys; sys.stdin.read()"


def begin() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdin=subprocess.PIPE)


def take(pid: int) -> subprocess.Popen[bytes]:
    """Start a process of this very pid."""
    for _ in range(100):
        LAST_PID.write_text(str(pid - 1))
        process = begin()
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    sys.exit(f"pid {pid} was never given out again")


def a_round(home: StoreHome, number: int) -> dict[str, Any]:
    runner = begin()
    identity = identify(runner.pid, "f" * 32)
    writer = create_run(home, make_plan(number), make_recovery(number))
    writer.status(make_status(number, runner=identity), milestone=False)
    fields = {"run_id": run_id(number), "state": "pending", "spawn": "cold", "token": "f" * 32}
    started = {"pid": identity.pid, "start_ticks": identity.start_ticks, "observer_pid": 999_999}
    writer.process(ProcessRecord.model_validate({**fields, **started}))
    runner.kill()
    runner.wait()
    tick = start_ticks(os.getpid())
    until(lambda: _now() > (identity.start_ticks or 0) + 1, what=f"the next tick after {tick}")
    stranger = take(identity.pid)
    try:
        run = Run(home, run_id(number))
        # Its lock is held by somebody who has nothing to do with it: only then the supervisor looks at its process.
        lock = hold(writer.paths.lock)
        writer.mail.request(make_request(number))
        adopted = Reattached(home)
        watched = [*adopted.find()]
        adopted.force()
        os.close(lock)
        told = []
        for _ in range(STOPS):
            told.append(end_process(identity.pid, identity.start_ticks))
            end_run_processes(None, mark_of(run.id, "f" * 32))
        state = run.state
        try:
            run.stop()
        except RequestError:
            told.append(True)
        answer = {"pid": stranger.pid == identity.pid, "alive": alive(stranger.pid), "gone": all(told)}
        return {**answer, "state": state, "watched": len(watched)}
    finally:
        stranger.communicate()
        print(json.dumps({"code": stranger.returncode}), flush=True)


def _now() -> int:
    """Return the present in start ticks."""
    with begin() as process:
        ticks = start_ticks(process.pid)
        process.kill()
    return ticks or 0


def main() -> None:
    home = open_home(Path(sys.argv[1]))
    for number in range(1, int(sys.argv[2]) + 1):
        print(json.dumps(a_round(home, number)), flush=True)


if __name__ == "__main__":
    main()
