"""What a process asks of Linux about itself; see prctl(2). Elsewhere nothing happens."""

from __future__ import annotations

_SET_DUMPABLE, _SET_NAME, _SET_CHILD_SUBREAPER = 4, 15, 36


def adopt_orphans() -> bool:
    """Have the processes below this one fall to it when their own parents end; False where the system can't do that."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def keep_memory_private() -> None:
    """Let no other process of this user read our memory, nor a core file hold it: keys are in it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (ImportError, OSError, ValueError):
        pass
    _prctl(_SET_DUMPABLE, 0)


def name_process(name: str) -> None:
    """Give this process a name of at most fifteen bytes, for lists of processes."""
    _prctl(_SET_NAME, name.encode()[:15])


def show_as(*words: str) -> None:
    """Show other words as the command line of this process, a fork: who ends its parent by name must not end it too.

    They stand where `arg_start` in proc_pid_stat(5) says.
    """
    try:
        import ctypes

        with open("/proc/self/stat", "rb") as file:
            start, end = map(int, file.read().rpartition(b")")[2].split()[45:47])
        if room := end - start:
            said = b"\0".join(word.encode() for word in words)[: room - 1]
            ctypes.memmove(start, said.ljust(room, b"\0"), room)
    except (ImportError, OSError, ValueError, AttributeError):
        pass


def _prctl(what: int, value: object) -> bool:
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(what, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError, TypeError):  # no Linux
        return False
