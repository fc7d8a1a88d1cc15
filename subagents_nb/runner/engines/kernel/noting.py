"""What runs inside the agent's kernel: each file that this very process writes is noted, to be known as its own.

inotify(7) tells what changed and not by whom. An audit hook hears every `open` of Python in this process, and in those
that are forked from it; what compiled libraries open by themselves, as those that write Parquet do, fanotify tells.
Neither knows of other programs that the kernel starts.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from subagents_nb.runner.engines.kernel.fanotify import OwnEvents

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FAR = 300  # far from the numbers that a program counts on, or closes
# Where the path and the directory that it is relative to stand among the arguments, and what is noted.
_EVENTS: dict[str, tuple[tuple[int, int | None, bytes], ...]] = {
    "open": ((0, None, b"w"),),
    "os.rename": ((0, 2, b"x"), (1, 3, b"m")),
    "os.link": ((1, 3, b"l"),),
    "os.mkdir": ((0, 2, b"d"),),
    "os.remove": ((0, 1, b"x"),),
    "os.rmdir": ((0, 1, b"x"),),
    "os.truncate": ((0, None, b"l"),),
    "sqlite3.connect": ((0, None, b"w"),),
}
MOST = 200_000


def note_writes(log: str, root: str, folders: Sequence[str] = ()) -> Callable[[], None]:
    """Note from now on in the file `log` what this process writes below `root`: a letter, the path there, a NUL.

    `w` is closed once, `m` came by a move, `x` was taken away, `d` is a directory, `l` anything else. `o` was written
    by this process and `t` by another one, as fanotify says of `folders`: that is noted when the function is called
    that is returned.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = _far_away(os.open(log, flags, 0o600))
    top = os.path.realpath(root) + os.sep
    left = MOST

    def note(path: Any, folder: Any, letter: bytes) -> None:
        nonlocal left
        if isinstance(path, int) or left <= 0:
            return
        name = os.fsdecode(path)
        if isinstance(folder, int) and folder >= 0:
            name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
        above, last = os.path.split(os.path.abspath(name))
        place = os.path.join(os.path.realpath(above), last)
        if place.startswith(top):
            left -= 1
            os.write(handle, letter + os.fsencode(place[len(top) :]) + b"\0")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        wanted = _EVENTS.get(event)
        if wanted is None or (event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES)):
            return
        for path, folder, letter in wanted:
            try:
                note(args[path], None if folder is None else args[folder], letter)
            except (OSError, ValueError, TypeError, IndexError):
                continue  # then it is not known as its own

    sys.addaudithook(hook)
    try:
        own = OwnEvents(top, folders)
    except (OSError, AttributeError, TypeError):
        return lambda: None  # an older system, or a file system without such marks

    def note_events() -> None:
        for letter, path in own.drain():
            os.write(handle, letter + os.fsencode(path) + b"\0")

    plain_mkdir = os.mkdir

    @functools.wraps(plain_mkdir)
    def mkdir(path: Any, *args: Any, **options: Any) -> None:
        plain_mkdir(path, *args, **options)
        if "dir_fd" not in options:
            own.add(os.path.relpath(os.path.realpath(path), top))

    os.mkdir = mkdir  # what is written there at once is to be seen too, and marks go no deeper: fanotify(7)
    return note_events


def _far_away(handle: int) -> int:
    try:
        import fcntl

        far = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _FAR)
    except (ImportError, OSError, ValueError):
        return handle
    os.close(handle)
    return far
