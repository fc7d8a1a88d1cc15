"""fanotify, as a process without rights may use it: of each event it learns whether it was its own, and no more.

See fanotify_init(2): since Linux 5.13, by file handles, and the pid of other processes is 0. The events have to be read
by the process whose own they are to be.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator, Sequence

_INIT = 0x1 | 0x2 | 0x200 | 0x400 | 0x800  # close on exec, don't block, report directory, name and no descriptor
_CREATE, _CLOSE_WRITE, _MOVED_TO, _OVERFLOW = 0x100, 0x8, 0x80, 0x4000
_ON_DIR, _ON_CHILD = 0x40000000, 0x08000000
_WANTED = _CREATE | _CLOSE_WRITE | _MOVED_TO | _ON_DIR | _ON_CHILD
_HEAD, _INFO, _HANDLE = struct.Struct("=IBBHQii"), struct.Struct("=BBH8s"), struct.Struct("=Ii")
_DIR_AND_NAME = 2
_FID_ONLY = 0x200  # a handle that only names a file, as the events hold; since Linux 6.5, open_by_handle_at(2)
_MOST_HANDLE = 128
_HERE = -100
MOST = 4000


class OwnEvents:
    """What is written in these directories below `top`, and whether by this process."""

    def __init__(self, top: str, folders: Sequence[str]) -> None:
        self._top = top
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[bytes, str] = {}
        self._handle: int = self._libc.fanotify_init(ctypes.c_uint(_INIT), ctypes.c_uint(os.O_RDONLY))
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "no fanotify")
        if not folders or not all(self.add(folder) for folder in folders[:MOST]):
            os.close(self._handle)
            raise OSError("not all directories can be watched")

    def add(self, folder: str) -> bool:
        """Watch one more directory; say whether that could be done."""
        if folder.startswith(".."):
            return False
        place = os.fsencode(os.path.join(self._top, folder))
        names = [name for flag in (_FID_ONLY, 0) if (name := self._name(place, flag)) is not None]
        if not names or self._libc.fanotify_mark(self._handle, 1, ctypes.c_uint64(_WANTED), _HERE, place) < 0:
            return False
        self._folders |= dict.fromkeys(names, "" if folder == "." else folder)
        return True

    def drain(self) -> Iterator[tuple[bytes, str]]:
        """Yield what was written since the last time: `o` by this process, `t` by others, and the path.

        `!` says that some of it is lost.
        """
        own = os.getpid()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._handle, 1 << 16):
                at = 0
                while at < len(data):
                    length, _, _, head, mask, _, pid = _HEAD.unpack_from(data, at)
                    path = self._path(data[at + head : at + length])
                    at += length
                    if mask & _OVERFLOW:
                        yield b"!", ""
                    if path is None:
                        continue
                    if mask & _ON_DIR:
                        self.add(path)
                    elif mask & (_CLOSE_WRITE | _MOVED_TO):
                        yield b"o" if pid == own else b"t", path

    def _path(self, info: bytes) -> str | None:
        if len(info) < _INFO.size + _HANDLE.size:
            return None
        kind, _, length, _ = _INFO.unpack_from(info)
        size, _ = _HANDLE.unpack_from(info, _INFO.size)
        name_at = _INFO.size + _HANDLE.size + size
        folder = self._folders.get(info[_INFO.size : name_at])
        if kind != _DIR_AND_NAME or folder is None:
            return None
        name = os.fsdecode(info[name_at:length].split(b"\0", 1)[0])
        return f"{folder}/{name}" if folder else name

    def _name(self, place: bytes, flag: int) -> bytes | None:
        handle = ctypes.create_string_buffer(_HANDLE.pack(_MOST_HANDLE, 0) + bytes(_MOST_HANDLE))
        mount = ctypes.c_int()
        if self._libc.name_to_handle_at(_HERE, place, handle, ctypes.byref(mount), flag) < 0:
            return None
        size, _ = _HANDLE.unpack_from(handle.raw)
        return handle.raw[: _HANDLE.size + size]
