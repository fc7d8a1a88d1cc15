"""The few file operations everything is built from, in one object, so that a test can make the k-th of them fail."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import time
from pathlib import Path

from subagents_nb.errors import Unreadable
from subagents_nb.store.files.inside import inside, open_parent
from subagents_nb.store.files.opener import READ

PRIVATE_FILE = 0o600
PRIVATE_DIR = 0o700
MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
# These say nothing about the file: asked again later, the answer may be another.
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EIO, errno.ESTALE})

_HELD_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25, 0.25)


class Disk:
    """Replace, create once, append, read bounded. Every call names whole paths inside directories that are ours.

    Below a run's directory, itself included, no link is followed: a call that would need to raises NotADirectoryError.
    """

    waits_for_readers = os.name == "nt"  # where none that is open can be replaced: modelcontextprotocol/servers#3632
    pause = staticmethod(time.sleep)

    def make_dir(self, path: Path) -> None:
        """Create one private directory.

        Raises:
            FileExistsError: it is there already.
        """
        with inside(path) as (folder, name):
            os.mkdir(name, PRIVATE_DIR, dir_fd=folder)

    def remove(self, path: Path) -> None:
        """Remove a file of ours."""
        with inside(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def replace(self, path: Path, data: bytes, *, durable: bool) -> None:
        """Put `data` in place of whatever `path` holds: readers see the old or the new, whole."""
        temp = self._write_temp(path, data, durable=durable)
        try:
            self.rename(temp, path)
        except BaseException:
            self._discard(temp)
            raise
        if durable:
            self.sync_dir(path.parent)

    def create_once(self, path: Path, data: bytes, *, durable: bool = True, entry: bool = True) -> bool:
        """Create `path` with `data`; return False, changing nothing, if it exists already.

        `durable` brings the content to the device, `entry` its name too; whoever leaves `entry` out writes a durable
        file into the same directory afterwards.
        """
        temp = self._write_temp(path, data, durable=durable)
        try:
            self.link(temp, path)
        except FileExistsError:
            return False
        finally:
            self._discard(temp)
        if entry:
            self.sync_dir(path.parent)
        return True

    def link(self, temp: Path, path: Path) -> None:
        """Give a finished file its name, refusing to replace another."""
        try:
            with inside(temp) as (source, old), inside(path) as (target, new):
                if source is None or target is None:
                    os.link(temp, path)
                else:
                    os.link(old, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            # No hard links here, link(2): an empty claim decides who may write, then the ordinary replace follows.
            claim = path.with_name(f".{path.name}.claim")
            os.close(self.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                self.rename(temp, path)
            except BaseException:
                self._discard(claim)  # or the next try would take our own claim for somebody's file
                raise

    def rename(self, source: Path, target: Path) -> None:
        """Rename over the target in one step. On Windows whoever reads the target holds us up, for a second at most.

        Raises:
            OSError: it can't be done; the source is left where it is.
        """
        for pause in _HELD_S if self.waits_for_readers else ():
            try:
                return self._rename(source, target)
            except PermissionError:
                self.pause(pause)
        return self._rename(source, target)

    @staticmethod
    def _rename(source: Path, target: Path) -> None:
        with inside(source) as (source_dir, old), inside(target) as (target_dir, new):
            os.replace(old, new, src_dir_fd=source_dir, dst_dir_fd=target_dir)

    def sync_dir(self, directory: Path) -> None:
        """Make a rename or link in `directory` survive a power cut, where the platform can: fsync(2)."""
        if os.name == "nt":
            return
        handle = self.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def read(self, path: str | Path, most: int = MAX_DOCUMENT_BYTES) -> bytes:
        """Return the whole content of a regular file of ours, of `most` bytes; no document has more than the default.

        Raises:
            Unreadable: it is missing, a link or something else than a file, too large, or not permitted.
        """
        handle, size = _open_regular(path)
        try:
            if size > most:
                raise Unreadable(f"it has {size:,} bytes, and {most:,} are the most that it may have", kind="too-large")
            return _read_all(handle, size, most)
        except OSError as error:
            raise Unreadable(f"it can't be read ({error.strerror})", kind="busy") from error
        finally:
            os.close(handle)

    def open_reading(self, path: str | Path) -> io.BufferedReader:
        """Open a regular file of ours for reading, at once, and never through a link.

        Raises:
            Unreadable: it is missing, a link or something else than a file, or not permitted.
        """
        return open(_open_regular(path)[0], "rb")

    def _write_temp(self, path: Path, data: bytes, *, durable: bool) -> Path:
        temp = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        handle = self.open(temp, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            try:
                self.write(handle, data)
                if durable:
                    self.sync(handle)
            finally:
                os.close(handle)
        except BaseException:
            self._discard(temp)
            raise
        return temp

    def open(self, path: Path, flags: int) -> int:
        """Open a file or directory of ours, never through a link and without waiting; what is made is private."""
        with inside(path) as (folder, name):
            return os.open(name, flags | READ, PRIVATE_FILE, dir_fd=folder)

    def write(self, handle: int, data: bytes) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]

    def sync(self, handle: int) -> None:
        """Flush a file to the device."""
        os.fsync(handle)

    def _discard(self, temp: Path) -> None:
        with contextlib.suppress(OSError):
            self.remove(temp)


def _open_regular(path: str | Path) -> tuple[int, int]:
    """Return the descriptor of a regular file and its size. Raises as `Disk.open_reading`."""
    try:
        handle = _open_for_reading(path)
    except FileNotFoundError as error:
        raise Unreadable("it is not there", kind="missing") from error
    except PermissionError as error:
        raise Unreadable("reading it is not permitted", kind="denied") from error
    except OSError as error:
        kind = "busy" if error.errno in _PASSING else "foreign"
        raise Unreadable(f"it can't be opened ({error.strerror})", kind=kind) from error
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise Unreadable("it is not a regular file", kind="foreign")
    return handle, about.st_size


def _open_for_reading(path: str | Path) -> int:
    # What `inside` does, without a generator: lists come here thousands of times.
    folder = open_parent(path)
    if folder is None:
        return os.open(path, READ)
    try:
        name = os.fspath(path).rpartition(os.sep)[2]
        return os.open(name, READ, dir_fd=folder)
    finally:
        os.close(folder)


def _read_all(handle: int, size: int, most: int) -> bytes:
    parts = []
    left = most + 1
    while left > 0:
        wanted = min(left, max(size, 0) + 1)
        part = os.read(handle, wanted)
        parts.append(part)
        left -= len(part)
        if len(part) < wanted:  # a regular file gives less only at its end
            break
    return b"".join(parts)


DISK = Disk()
