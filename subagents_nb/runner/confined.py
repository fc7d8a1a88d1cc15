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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIR = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
# A pipe in place of a file must not hold us up.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
_HASHED_BYTES = 1024 * 1024
_CHUNK = 256 * 1024


class NotConfined(OSError):
    """The path can't be used: a link or something else that is no plain file or folder stands in it."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EPERM, f"{path} {what}")


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
        NotConfined: a link stands in the path, or no plain file at its end.
        OSError: it can't be read.
    """
    try:
        with open_file(root, path) as fd:
            about = os.fstat(fd)
            digest = hashlib.sha256(os.read(fd, _HASHED_BYTES)).hexdigest() if about.st_size <= _HASHED_BYTES else None
            return Seen(about.st_size, about.st_mtime_ns, about.st_ino, digest)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def open_file(root: Path, path: str) -> Iterator[int]:
    """Open a plain file of the workspace for reading, with the same errors as `look`."""
    with _folder_of(root, path) as (folder, name):
        try:
            fd = os.open(name, _READ, dir_fd=folder)
        except OSError as error:
            raise _plainer(error, path) from None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise NotConfined(path, "is no plain file")
            yield fd
        finally:
            os.close(fd)


def replace(root: Path, path: str, data: bytes) -> None:
    """Put `data` in the file's place in one step; folders are made, the mode of a file that was there is kept.

    Raises:
        NotConfined: a link stands in the path, or no plain file at its end.
        OSError: it can't be written.
    """
    with _folder_of(root, path, make=True) as (folder, name):
        mode = _mode_of(folder, name, path)
        temp = f".{secrets.token_hex(8)}.part"
        fd = os.open(temp, _NEW, 0o666, dir_fd=folder)
        try:
            try:
                if mode is not None:
                    os.fchmod(fd, mode)
                _write_all(fd, data)
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
    with _folder_of(root, path, make=True) as (folder, name):
        if _mode_of(folder, name, path) is not None:
            return False
        try:
            fd = os.open(name, _NEW, 0o666, dir_fd=folder)
        except FileExistsError:
            return False
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)
        return True


def chunks(fd: int) -> Iterator[bytes]:
    """Return the rest of an open file, piece by piece."""
    while piece := os.read(fd, _CHUNK):
        yield piece


@contextlib.contextmanager
def _folder_of(root: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that the path's last name is in, each folder from the one above it."""
    if not _HERE:
        raise NotConfined(path, "can't be reached safely: this system can't open folders one from another")
    *folders, name = path.split("/")
    if name in ("", ".", "..") or any(part in ("", ".", "..") for part in folders):
        raise NotConfined(path, "is not in its shortest form")
    fd = os.open(root, _DIR & ~getattr(os, "O_NOFOLLOW", 0))  # the workspace itself may be reached through a link
    try:
        for part in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=fd)
            try:
                inner = os.open(part, _DIR, dir_fd=fd)
            except OSError as error:
                raise _plainer(error, path) from None
            os.close(fd)
            fd = inner
        yield fd, name
    finally:
        os.close(fd)


def _mode_of(folder: int, name: str, path: str) -> int | None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode):
        raise NotConfined(path, "is a symlink" if stat.S_ISLNK(about.st_mode) else "is no plain file")
    if not about.st_mode & stat.S_IWUSR:
        # To rename over it would work, and would not be what its owner meant.
        raise PermissionError(errno.EACCES, "the file that is there is write-protected")
    return stat.S_IMODE(about.st_mode)


def _plainer(error: OSError, path: str) -> OSError:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return NotConfined(path, "is a symlink or leads through one")
    if error.errno == errno.ENOTDIR:
        return NotConfined(path, "leads through a symlink, or through something that is no folder")
    if error.errno == errno.ENXIO:
        return NotConfined(path, "is no plain file")
    return error


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
