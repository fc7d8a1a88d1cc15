"""Watch a workspace with inotify: which files are opened in it, which directories are listed, and what changes.

A hook of Python's own would miss Parquet in most libraries, and every subprocess. This sees them all; that it sees
other people's opens too only costs a needless launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from collections import Counter
from pathlib import Path

MAX_DIRECTORIES = 8192
_IN_MODIFY, _IN_OPEN, _IN_MOVED_FROM, _IN_MOVED_TO = 0x2, 0x20, 0x40, 0x80
_IN_CLOSE_WRITE, _IN_CLOSE_NOWRITE = 0x8, 0x10
_IN_CREATE, _IN_DELETE = 0x100, 0x200
_IN_OVERFLOW, _IN_IGNORED, _IN_ONLYDIR, _IN_DONT_FOLLOW, _IN_ISDIR = 0x4000, 0x8000, 0x1000000, 0x2000000, 0x40000000
_NEW = _IN_CREATE | _IN_MOVED_TO
_CLOSE = _IN_CLOSE_WRITE | _IN_CLOSE_NOWRITE
_WANTED = _IN_MODIFY | _IN_OPEN | _CLOSE | _NEW | _IN_DELETE | _IN_MOVED_FROM | _IN_ONLYDIR | _IN_DONT_FOLLOW
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if os.name == "posix" else 0
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16
# Installed packages, caches and what tools keep for themselves: no work of the person's, and much of it.
LEFT_OUT = frozenset(
    {".git", ".venv", "node_modules", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache",
     ".ruff_cache"}
)  # fmt: skip
_BYTECODE = "__pycache__"  # read in place of a module's source, which is only asked for its stamp then
# What these keep, `version/file`, stands in for files that are not opened again.
_ANSWERS = frozenset({".mypy_cache", ".ruff_cache"})
_GIT_FOLDERS = (".git", ".git/logs", ".git/refs/heads", ".git/refs/tags")
# What git opens that compares files, lists branches or tags: a folder says it of itself.
_GIT_ANSWERS = frozenset({".git/index", ".git/refs/heads", ".git/refs/tags"})
GIT_STATE = (".git/HEAD", ".git/logs/HEAD")  # what every git command opens, and what every commit changes


class CannotWatch(Exception):
    """The tree can't be watched; the message says why."""


class Watch:
    """One tree under watch, from its making to `close`. Belongs to one thread at a time."""

    def __init__(self, root: Path, *, skip: frozenset[str] = frozenset(), most: int = MAX_DIRECTORIES) -> None:
        self.opened: set[str] = set()
        self.listed: set[str] = set()
        self.links: dict[str, str] = {}  # the tree's symbolic links, and where they lead
        self.answered: set[str] = set()  # tools' caches that were read, so nobody knows of which files
        self.git_asked = False  # how the files differ from the last commit, or which branches there are
        self.overflowed = False
        # How often each file was closed by one who could write, or put in its place by a move. Nobody says who it was,
        # and equal events in a row are one, so it may have been oftener: inotify(7).
        self.writes: Counter[str] = Counter()
        self.unfinished: set[str] = set()  # written, and not closed since by anybody who could write
        self.read_first: set[str] = set()  # read to an end before they changed, since the last `forget`
        # Since the last `forget`, with the number of the latest event of each.
        self._changed: dict[str, int] = {}
        self._made: dict[str, int] = {}
        self._arrived: dict[str, int] = {}  # what got its name by a move
        self.count = 0  # how many events were taken in so far
        self._root = os.path.realpath(root)
        self._skip = skip
        self._most = most
        self._folders: dict[int, str] = {}
        self._answers: dict[int, set[str]] = {}  # folders of tools' caches: what was made there meanwhile
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.handle: int = self._libc.inotify_init1(_FLAGS)
        except (OSError, AttributeError, TypeError):
            raise CannotWatch("this system can't watch files") from None
        if self.handle < 0:
            raise CannotWatch(_why(ctypes.get_errno()))
        try:
            self._add_tree("")
            for folder in _GIT_FOLDERS:
                if os.path.isdir(os.path.join(self._root, folder)):
                    self._add(folder)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Watch no longer."""
        os.close(self.handle)

    def forget(self) -> None:
        """Forget what was seen so far; the tree stays under watch."""
        self.drain()
        self.git_asked = False
        for seen in (
            self.opened,
            self.listed,
            self.answered,
            self.read_first,
            self._changed,
            self._made,
            self._arrived,
        ):
            seen.clear()

    def drain(self) -> None:
        """Take in what happened up to now.

        Raises:
            CannotWatch: the tree has grown too large.
        """
        while True:
            try:
                data = os.read(self.handle, _BUFFER)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
                at += length
                self._take(watch, mask, name)

    @property
    def changed(self) -> set[str]:
        """Return what was made, written, moved or removed; what came and went again is left out."""
        return set(self.changed_since(0))

    def changed_since(self, count: int) -> dict[str, bool]:
        """Return the same of the events after the first `count`, and of each path whether it is a new name.

        A file that was moved to where another one lay counts as new too.
        """
        changed: dict[str, bool] = {}
        for path, at in self._changed.items():
            place = os.path.join(self._root, path)
            if at <= count or (path in self._made and not os.path.lexists(place)):
                continue
            new = max(self._made.get(path, 0), self._arrived.get(path, 0)) > count
            if os.path.isdir(place) and not os.path.islink(place):
                inside = self._files_below(path) or {f"{path}/"}
            else:
                inside = {path}
            for one in inside:
                changed[one] = new or changed.get(one, False)
        return changed

    @property
    def watched_folders(self) -> tuple[str, ...]:
        """Return the directories under watch, but for git's and caches."""
        return tuple(one for one in self._folders.values() if LEFT_OUT.isdisjoint(one.split("/")))

    def aliases(self, path: str) -> set[str]:
        """Return the other paths of a file by the links that lead to it."""
        return {
            link + path[len(target) :]
            for link, target in self.links.items()
            if path == target or path.startswith(f"{target}/")
        }

    @property
    def leads_out(self) -> str | None:
        """Return a link that leads out of the tree: what is read through it is not seen."""
        return next((link for link, target in self.links.items() if target.startswith("..")), None)

    def _take(self, watch: int, mask: int, name: str) -> None:
        self.count += 1
        if mask & _IN_OVERFLOW:
            self.overflowed = True
        if mask & _IN_IGNORED:
            self._folders.pop(watch, None)
            self._answers.pop(watch, None)
        folder = self._folders.get(watch)
        if folder is None or mask & (_IN_OVERFLOW | _IN_IGNORED):
            return
        path = f"{folder}/{name}" if folder and name else folder or name
        if folder in _GIT_FOLDERS:
            self._take_git(path, mask)
        elif watch in self._answers:
            self._take_answer(watch, folder, mask, name)
        elif folder.rpartition("/")[2] == _BYTECODE:
            if mask & _IN_OPEN and name.endswith(".pyc"):
                self.opened.add(f"{folder.removesuffix(_BYTECODE)}{name.partition('.')[0]}.py")
        elif mask & _NEW and mask & _IN_ISDIR and name == _BYTECODE:
            self._add(path)
        elif not self._is_left_out(path, name):
            self._take_ours(path, mask, name)

    def _take_ours(self, path: str, mask: int, name: str) -> None:
        if mask & _CLOSE:
            self._take_close(path, mask)
            return
        if mask & _IN_OPEN:
            if not mask & _IN_ISDIR:
                self.opened.add(path)
            elif not name:  # the directory itself says it, and so does the one above
                self.listed.add(path or ".")
            return
        if not name:
            return
        if mask & _IN_CREATE and (path not in self._changed or path in self._made):
            self._made[path] = self.count
        elif mask & _IN_MOVED_TO:
            self._arrived[path] = self.count
            self.writes[path] += 1
        elif mask & _IN_MODIFY:
            self.unfinished.add(path)
        self._changed[path] = self.count
        if mask & _NEW and mask & _IN_ISDIR:
            self._add_tree(path)

    def _take_close(self, path: str, mask: int) -> None:
        if mask & _IN_ISDIR:
            return
        if mask & _IN_CLOSE_WRITE:
            self.writes[path] += 1
            self.unfinished.discard(path)
        elif path not in self._changed:
            self.read_first.add(path)

    def _take_git(self, path: str, mask: int) -> None:
        if mask & _IN_OPEN and path in _GIT_ANSWERS:
            self.git_asked = True
        if path == GIT_STATE[0] and mask & _IN_OPEN:
            self.opened.update(GIT_STATE)
        elif path == GIT_STATE[1] and mask & (_IN_MODIFY | _NEW):
            self._changed[path] = self.count

    def _take_answer(self, watch: int, folder: str, mask: int, name: str) -> None:
        if not name or mask & _IN_ISDIR:
            return
        if mask & _NEW:
            self._answers[watch].add(name)
        elif mask & _IN_OPEN and name not in self._answers[watch]:
            self.answered.add(folder.rpartition("/")[0])

    def _is_left_out(self, path: str, name: str) -> bool:
        return name in LEFT_OUT or path in self._skip

    def _add_tree(self, folder: str) -> None:
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            # Watched first, read then: what comes in between is seen at least once, as inotify(7) advises.
            if not self._add(here):
                continue
            with contextlib.suppress(OSError), os.scandir(os.path.join(self._root, here)) as entries:
                for entry in entries:
                    path = f"{here}/{entry.name}" if here else entry.name
                    if self._is_left_out(path, entry.name) or _is_environment(entry):
                        if entry.is_dir(follow_symlinks=False):
                            self._add_cache(path, entry.name)
                        continue
                    if entry.is_symlink():
                        self.links[path] = os.path.relpath(os.path.realpath(entry.path), self._root)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(path)

    def _add_cache(self, path: str, name: str) -> None:
        if name == _BYTECODE and path not in self._skip:
            self._add(path)
        elif name in _ANSWERS:
            with contextlib.suppress(OSError), os.scandir(os.path.join(self._root, path)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and self._add(f"{path}/{entry.name}"):
                        self._answers[next(reversed(self._folders))] = set()

    def _add(self, folder: str) -> bool:
        if len(self._folders) >= self._most:
            raise CannotWatch(f"the workspace is too large to watch: more than {self._most:,} directories")
        watch = self._libc.inotify_add_watch(self.handle, os.fsencode(os.path.join(self._root, folder)), _WANTED)
        if watch < 0:
            number = ctypes.get_errno()
            if number in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise CannotWatch(_why(number))
        self._folders[watch] = folder
        return True

    def _files_below(self, folder: str) -> set[str]:
        found: set[str] = set()
        for place, folders, files in os.walk(os.path.join(self._root, folder)):
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            found.update(os.path.relpath(os.path.join(place, name), self._root) for name in files)
        return found


def _is_environment(entry: os.DirEntry[str]) -> bool:
    """Say whether installed packages lie there, under whatever name: as venv and conda mark it."""
    return entry.is_dir(follow_symlinks=False) and any(
        os.path.lexists(os.path.join(entry.path, mark)) for mark in ("pyvenv.cfg", "conda-meta")
    )


def _why(number: int) -> str:
    if number in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
        return "the workspace is too large to watch: the system allows no more watches"
    return f"the workspace can't be watched ({os.strerror(number)})"
