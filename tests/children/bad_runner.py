"""A runner that misbehaves: bad_runner.py KIND RUN_DIRECTORY.

silent   never says that it is there: no lock, no word, and deaf to TERM
deaf     begins, and hears nothing any more: neither files nor TERM
early    exits well before it begins
hollow   begins, and exits well without a result
brood    begins, starts twenty processes, half of them outside of its group and all deaf to TERM, and fails
daemon   begins, goes on as a daemon in a session of its own, and exits well
closed   begins, closes its standard streams, and aborts
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def rest() -> None:
    time.sleep(120)


def begin(root: Path) -> None:
    """Take the run over, as the real one does; waits for its launcher's word first."""
    import fcntl

    lock = os.open(root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(0) as launcher:
        assert launcher.readline().startswith("proceed ")
    status = json.loads((root / "status.json").read_text())
    (root / ".new").write_text(json.dumps({**status, "state": "running", "seq": 1}))
    os.replace(root / ".new", root / "status.json")


def fork_off(*, leave: bool) -> None:
    if os.fork() == 0:
        if leave:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.closerange(3, 256)  # an heir of the lock would pass for the runner
        rest()


def main(kind: str, root: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if kind == "silent":
        rest()
    if kind == "early":
        os._exit(0)
    begin(root)
    if kind == "deaf":
        rest()
    elif kind == "hollow":
        os._exit(0)
    elif kind == "brood":
        for number in range(20):
            fork_off(leave=number % 2 == 0)
        os._exit(3)
    elif kind == "daemon":
        fork_off(leave=True)
        os._exit(0)
    elif kind == "closed":
        os.closerange(0, 3)
        os.abort()


main(sys.argv[1], Path(sys.argv[2]))
