"""The one place that signals processes. Who may be signalled is proved at the moment it is done.

Two proofs count. A child of ours that is not reaped, waitid(2): its pid, and so the number of the group that it leads,
can't be anybody else's, though it ended long ago. Or a descriptor of the process, pidfd_open(2), that was opened before
its start time was compared with the one that was written down. A number that only was somebody's once is no proof.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NoReturn

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# Where a child can be looked at without reaping it. macOS has it from Python 3.13 on, python/cpython#113536; before,
# and there alone, a number stands for its child for as long as its owner says so.
_CAN_LOOK = hasattr(os, "waitid")


def is_unreaped(pid: int) -> bool:
    """Say whether a pid is that of a child of ours, at work or ended, that nobody has reaped."""
    if pid <= 1:
        return False  # no child of anybody's, and to the system a word for many
    if not _CAN_LOOK:
        return os.name == "posix"
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, PermissionError):
        return False
    return True


def has_ended(pid: int) -> bool:
    """Say whether an unreaped child of ours has ended."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def signal_child(pid: int, number: int) -> bool:
    """Signal an unreaped child of ours; False if it is none."""
    if not is_unreaped(pid):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        return True
    return False


def signal_group(leader: int, number: int) -> bool:
    """Signal the process group that an unreaped child of ours leads; False if it is none, or nobody is in it."""
    if not is_unreaped(leader):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
        return True
    return False


def signal_handle(handle: int, number: int) -> bool:
    """Signal a process through a descriptor that its owner opened and then verified; False if it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(handle, number)
        return True
    return False


def signal_process(pid: int, ticks: int | None, number: int) -> bool:
    """Signal the process that began at `ticks`, by the system's count, and no other; False if it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except AttributeError:  # no descriptors of processes here: the look that its owner took just now has to do
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            return True
        return False
    except (ProcessLookupError, PermissionError):
        return False
    try:
        return ticks is not None and ticks_of(pid) == ticks and signal_handle(handle, number)
    finally:
        os.close(handle)


def ticks_of(pid: int) -> int | None:
    """Return when a process began, in the system's ticks since it was started; None if that can't be seen."""
    try:
        return int(stat_of(pid)[19])
    except (OSError, IndexError, ValueError):
        return None


def stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the command name, which may hold blanks, brackets, half a character.

    Raises:
        OSError: it is gone or hidden, or there is no /proc.
    """
    # Hundreds of these are read at a time: no file objects. None is as long as a page: proc_pid_stat(5).
    handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 4096).rpartition(b")")[2].decode("ascii", "replace").split()
    finally:
        os.close(handle)


def exists(pid: int) -> bool:
    """Say whether any process has this number now; who it is, is another question."""
    if pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        return True
    return True


def end_self() -> NoReturn:
    """End this very process as the system would, with no chance to put anything away."""
    os.kill(os.getpid(), KILL)
    os._exit(137)
