"""Files of the workspace as the runner itself touches them: never through a symlink, not even in a folder's place.

A step has had its hands on the workspace, so each folder on the way is opened from the one above it and refused when it
is not one; nothing here follows a link, and what is opened stays opened until the work on it is done.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import NO_LINK, NotPlain, folder_of, open_below

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
_HASHED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Seen:
    """A plain file at one moment."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str | None  # None: too large to hash


def look(root: Path, path: str) -> Seen | None:
    """Return the file as it is now; None if there is none.

    Raises:
        NotPlain: a link stands in the path, or no plain file at its end.
        OSError: it can't be read.
    """
    try:
        with open_below(root, path) as fd:
            about = os.fstat(fd)
            digest = hashlib.sha256(os.read(fd, _HASHED_BYTES)).hexdigest() if about.st_size <= _HASHED_BYTES else None
            return Seen(about.st_size, about.st_mtime_ns, about.st_ino, digest)
    except FileNotFoundError:
        return None


def replace(root: Path, path: str, data: bytes) -> None:
    """Put `data` in the file's place in one step; folders are made, the mode of a file that was there is kept.

    Raises:
        NotPlain: a link stands in the path, or no plain file at its end.
        OSError: it can't be written.
    """
    with folder_of(root, path, make=True) as (folder, name):
        mode = _mode_of(folder, name, path)
        temp = f".{secrets.token_hex(8)}.part"
        fd = os.open(temp, _NEW, 0o666, dir_fd=folder)
        try:
            try:
                if mode is not None:
                    os.fchmod(fd, mode)
                DISK.write(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temp, dir_fd=folder)
            raise


def create(root: Path, path: str, data: bytes) -> bool:
    """Create a small file; False if there is one already. The errors are those of `replace`."""
    with folder_of(root, path, make=True) as (folder, name):
        if _mode_of(folder, name, path) is not None:
            return False
        try:
            fd = os.open(name, _NEW, 0o666, dir_fd=folder)
        except FileExistsError:
            return False
        try:
            DISK.write(fd, data)
        finally:
            os.close(fd)
        return True


def _mode_of(folder: int, name: str, path: str) -> int | None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode):
        raise NotPlain(path, "is a symlink" if stat.S_ISLNK(about.st_mode) else "is no plain file")
    if not about.st_mode & stat.S_IWUSR:
        # To rename over it would work, and would not be what its owner meant.
        raise PermissionError(errno.EACCES, "the file that is there is write-protected")
    return stat.S_IMODE(about.st_mode)
