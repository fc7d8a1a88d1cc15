"""What lies in a workspace, in hashes: of a file's content, of the names below a directory.

A runner notes them for what it reads; a launcher takes them again later and compares. Both go through here.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path, PurePath

from subagents_nb.domain.base import sha256_text

MAX_NAMES = 100_000
_RACY_S = 2.0  # a file this young can change again without a change of its time
_CHUNK = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_LEFT_OUT = frozenset({"__pycache__"})  # comes and goes with the version of Python
_KNOWN: dict[tuple[str, tuple[int, ...]], str] = {}  # within one process only
_MOST_KNOWN = 50_000


class Unsettled(Exception):
    """It changed while it was looked at, or there is too much of it: no hash would be true."""


def inside(root: Path, path: str) -> str | None:
    """Return where a path of the workspace really lies, None if that is outside of it."""
    if "\0" in path or os.path.isabs(path) or ".." in path.split("/"):
        return None
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, path))
    return real if real == top or real.startswith(top.rstrip(os.sep) + os.sep) else None


def file_sha256(root: Path, path: str) -> str | None:
    """Return the SHA-256 of a file of the workspace; None if there is no regular file that can be read.

    Raises:
        Unsettled: it changed meanwhile.
    """
    real = inside(root, path)
    if real is None:
        return None
    try:
        handle = os.open(real, _FLAGS)
    except OSError:
        return None
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return None
        # The time of modification can be set back; that of the last change of anything about the file can't.
        mark = (real, _stamp(before))
        if (known := _KNOWN.get(mark)) is not None:
            return known
        digest = _digest(handle)
        after = os.fstat(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    if _stamp(after) != _stamp(before):
        raise Unsettled(f"{path} changed while it was read")
    now = time.time()
    if all(now - moment > _RACY_S for moment in (before.st_mtime, before.st_ctime)):
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[mark] = digest
    return digest


def own_names(own: Iterable[str]) -> frozenset[str]:
    """Return the paths that are a run's own, and the directories that may have been made for them."""
    return frozenset(str(part) for path in own for part in (PurePath(path), *PurePath(path).parents))


def names_sha256(names: Iterable[str], own: frozenset[str] = frozenset()) -> str:
    """Return the SHA-256 over names, without those that are the run's own."""
    return sha256_text("\n".join(name for name in names if name not in own))


def names_below(root: Path, path: str, pattern: str = "*", include: str = "") -> list[str]:
    """Return what a glob finds below a directory, as paths of the workspace, without what begins with a dot.

    Raises:
        Unsettled: there are too many.
    """
    folder = inside(root, path)
    if folder is None:
        return []
    found: list[str] = []
    for place in _matches(folder, pattern):
        name = os.path.relpath(place, os.path.realpath(root))
        if any(part.startswith(".") or part in _LEFT_OUT for part in name.split(os.sep)):
            continue
        if include and not fnmatch.fnmatch(name, include):
            continue
        found.append(name)
        if len(found) > MAX_NAMES:
            raise Unsettled(f"there are more than {MAX_NAMES:,} names below {path}")
    return sorted(found)


def _matches(folder: str, pattern: str) -> Iterable[str | Path]:
    if pattern == "*":
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            return [entry.path for entry in entries]
        return []
    if pattern == "**/*":
        return _walk(folder)
    return _glob(folder, pattern)


def _glob(folder: str, pattern: str) -> list[Path]:
    try:
        return list(Path(folder).glob(pattern))
    except (OSError, ValueError, NotImplementedError, IndexError):
        return []


def _walk(folder: str) -> Iterable[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
        for name in (*folders, *files):
            yield os.path.join(place, name)


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _digest(handle: int) -> str:
    digest = hashlib.sha256()
    while piece := os.read(handle, _CHUNK):
        digest.update(piece)
    return digest.hexdigest()
