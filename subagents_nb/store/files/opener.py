"""The one way to open what a project, an archive, an agent or a page brings: a plain file, at once, and bounded.

A clone may hold a link to a device, a pipe that nobody writes to, or a folder that is turned into a link while we look.
So what is no plain file is never opened (to open a device may already do something), nothing is waited for, and where a
file must lie in a folder each folder on the way is opened from the one above it, through no link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

OPENS_BELOW = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW")
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NO_LINK
# A pipe in place of a file must not hold us up, fifo(7), and no terminal becomes ours, open(2).
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | NO_LINK
_CHUNK = 256 * 1024


class NotPlain(OSError):
    """The path can't be used: a link or something else that is no plain file or folder stands in it."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EPERM, f"{path} {what}")


def read_plain(path: Path, most: int, *, within: Path | None = None) -> bytes:
    """Return what a plain file holds: `most` bytes, and one more if there are more.

    Links are followed: those of a project as far as it goes (`within`), those of the person wherever they lead.

    Raises:
        FileNotFoundError, NotADirectoryError: it is not there.
        NotPlain: it is no plain file, or a link leads out.
        OSError: it can't be read.
    """
    with open_plain(path, within=within) as fd:
        parts, remaining = [], most + 1
        while remaining > 0 and (piece := os.read(fd, min(remaining, _CHUNK))):
            parts.append(piece)
            remaining -= len(piece)
        return b"".join(parts)


@contextlib.contextmanager
def open_plain(path: Path, *, within: Path | None = None) -> Iterator[int]:
    """Open a plain file for reading, as `read_plain` does."""
    os.lstat(path)  # most that a launch looks for are not there, and need no second look
    # As text: a launch may look at thousands of files that another read.
    place = os.path.realpath(path)
    top = (os.path.dirname(place) if within is None else os.path.realpath(within)).rstrip(os.sep) + os.sep
    if not place.startswith(top):
        raise NotPlain(path.name, "is a link that leads out of its project")
    if OPENS_BELOW:
        with open_below(top, place[len(top) :]) as fd:
            yield fd
        return
    if not stat.S_ISREG(os.stat(place).st_mode):
        raise NotPlain(path.name, "is no plain file")
    fd = os.open(place, READ | getattr(os, "O_BINARY", 0))
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def open_below(root: str | Path, path: str) -> Iterator[int]:
    """Open a plain file below a folder for reading, through no link at all.

    Raises:
        NotPlain: a link stands in the path, or no plain file at its end.
        OSError: it can't be read.
    """
    with folder_of(root, path) as (folder, name), open_in(folder, name, path) as fd:
        yield fd


@contextlib.contextmanager
def open_in(folder: int, name: str, path: str) -> Iterator[int]:
    """Open a plain file in an open folder for reading; errors name it by its `path`. Raises as `open_below`."""
    try:
        _plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        fd = os.open(name, READ, dir_fd=folder)
    except OSError as error:
        raise _plainer(error, path) from None
    try:
        _plain(path, os.fstat(fd))
        yield fd
    finally:
        os.close(fd)


def open_to_write_below(root: str | Path, path: str, *, read_back: bool, create: bool) -> tuple[int, bool]:
    """Open a plain file below a folder for writing, through no link, and say whether it was made. Cuts nothing off.

    Raises:
        NotPlain: a link stands in the path, or no plain file at its end.
        OSError: it can't be written, or is not there and not to be made.
    """
    flags = (os.O_RDWR if read_back else os.O_WRONLY) | (READ & ~os.O_RDONLY)
    with folder_of(root, path) as (folder, name):
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder), True
            fd = os.open(name, flags, dir_fd=folder)
        except OSError as error:
            raise _plainer(error, path) from None
    try:
        _plain(path, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd, False


@contextlib.contextmanager
def folder_of(root: str | Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that the path's last name is in, each folder from the one above it. Raises as `open_below`."""
    if not OPENS_BELOW:
        raise NotPlain(path, "can't be reached safely: this system can't open folders one from another")
    *folders, name = path.split("/")
    if name in ("", ".", "..") or any(part in ("", ".", "..") for part in folders):
        raise NotPlain(path, "is not in its shortest form")
    fd = os.open(root, FOLDER & ~getattr(os, "O_NOFOLLOW", 0))  # the root itself may be reached through a link
    try:
        for part in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=fd)
            try:
                inner = os.open(part, FOLDER, dir_fd=fd)
            except OSError as error:
                raise _plainer(error, path) from None
            os.close(fd)
            fd = inner
        yield fd, name
    finally:
        os.close(fd)


def chunks(fd: int) -> Iterator[bytes]:
    """Return the rest of an open file, piece by piece."""
    while piece := os.read(fd, _CHUNK):
        yield piece


def _plain(path: str, about: os.stat_result) -> None:
    if stat.S_ISLNK(about.st_mode):
        raise NotPlain(path, "is a symlink or leads through one")
    if not stat.S_ISREG(about.st_mode):
        raise NotPlain(path, "is no plain file")


def _plainer(error: OSError, path: str) -> OSError:
    if error.errno in (errno.ELOOP, errno.EMLINK):  # of O_NOFOLLOW on Linux and on FreeBSD: open(2)
        return NotPlain(path, "is a symlink or leads through one")
    if error.errno == errno.ENOTDIR:
        return NotPlain(path, "leads through a symlink, or through something that is no folder")
    if error.errno == errno.ENXIO:
        return NotPlain(path, "is no plain file")
    return error
