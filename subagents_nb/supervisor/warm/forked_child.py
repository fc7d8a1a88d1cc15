"""What a forked runner does before it becomes the runner: it leaves everything of its supervisor behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from subagents_nb.prctl import name_process, show_as
from subagents_nb.store.files.disk import DISK

_CATCHABLE = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]


def become_runner(*, run_root: Path, cwd: str, environ: Mapping[str, str], keep: set[int]) -> None:
    """Turn a fresh fork into a process of its own: new session, own output files, no old descriptor but `keep`.

    Raises:
        OSError: the directory can't be entered.
    """
    os.setsid()
    os.umask(0o077)
    signal.set_wakeup_fd(-1)  # or our signals would wake the supervisor, whose pipe it is: python/cpython#75670
    for number in _CATCHABLE:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    _reopen_stdio(run_root)
    _close_others(keep)
    name_process("subagents-run")
    show_as("subagents_nb.runner", run_root.name)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)


def _reopen_stdio(run_root: Path) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for name, number in (("runner.out", 1), ("runner.err", 2)):
        handle = DISK.open(run_root / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.dup2(handle, number)


def _close_others(keep: set[int]) -> None:
    start = 3
    for handle in sorted(keep):
        os.closerange(start, handle)
        start = handle + 1
    os.closerange(start, max(start, _highest_descriptor() + 1))


def _highest_descriptor() -> int:
    try:
        return max(int(name) for name in os.listdir("/proc/self/fd"))
    except OSError:
        return 1024
