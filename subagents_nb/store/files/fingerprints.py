"""What lies in a workspace, in hashes: of a file's content, of the names below a directory.

A runner notes them for what it reads; a launcher takes them again later and compares. Both go through here.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path, PurePath

from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.globbing import MOST_CHARS, Allowance, TooMuch, walk
from subagents_nb.store.files.opener import open_plain

MAX_NAMES = 100_000
_RACY_S = 2.0  # a file this young can change again without a change of its time: racy-git in git's documentation
_CHUNK = 1 << 20
_SIZE = "\0"  # between a name and its size
_LEFT_OUT = frozenset({"__pycache__"})  # comes and goes with the version of Python
_KNOWN: dict[tuple[str, tuple[int, ...]], str] = {}  # within one process only
_MOST_KNOWN = 50_000


class Unsettled(Exception):
    """It changed while it was looked at, or there is too much of it: no hash would be true."""


class TooLong(Unsettled):
    """It was not looked at to its end."""


def inside(root: Path, path: str) -> str | None:
    """Return where a path of the workspace really lies, None if that is outside of it."""
    if not _is_below(path):
        return None
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, path))
    return real if real == top or real.startswith(top.rstrip(os.sep) + os.sep) else None


def _is_below(path: str) -> bool:
    return not ("\0" in path or os.path.isabs(path) or ".." in path.split("/"))


def file_sha256(root: Path, path: str, *, allowance: Allowance | None = None) -> str | None:
    """Return the SHA-256 of a file of the workspace; None if there is no regular file that can be read.

    Raises:
        Unsettled: it changed meanwhile, or takes longer than is allowed.
    """
    if not _is_below(path):
        return None
    try:
        with open_plain(root / path, within=root) as handle:
            before = os.fstat(handle)
            # The time of modification can be set back; that of the last change of anything can't: inode(7).
            mark = (str(root / path), _stamp(before))
            if (cached := _KNOWN.get(mark)) is not None:
                return cached
            digest = _digest(handle, path, allowance or Allowance())
            after = os.fstat(handle)
    except OSError:
        return None
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
    """Return the SHA-256 over names, with their sizes if they have some, without those that are the run's own."""
    return sha256_text("\n".join(name for name in names if name.partition(_SIZE)[0] not in own))


def variable_sha256(value: str | None) -> str | None:
    """Return the SHA-256 of the value of a variable; None where it is not set."""
    return None if value is None else sha256_text(value)


def names_below(
    root: Path,
    path: str,
    pattern: str = "*",
    include: str = "",
    *,
    sizes: bool = False,
    allowance: Allowance | None = None,
) -> list[str]:
    """Return what a glob finds below a directory, as paths of the workspace, without what begins with a dot.

    With `sizes` each has the size of the file behind it. A notebook has none: whoever shows it saves it all the time.

    Raises:
        Unsettled: there are too many, or it takes longer than is allowed.
    """
    folder = inside(root, path)
    if folder is None:
        return []
    above = os.path.relpath(folder, os.path.realpath(root))
    if above != "." and any(map(_is_hidden, above.split(os.sep))):
        return []
    names: list[str] = []
    try:
        for place in walk(folder, pattern, allowance or Allowance(), hidden=_is_hidden):
            name = place if above == "." else f"{above}/{place}"
            if include and not fnmatch.fnmatch(name, include[:MOST_CHARS]):
                continue
            names.append(f"{name}{_SIZE}{_size(os.path.join(folder, place))}" if sizes else name)
            if len(names) > MAX_NAMES:
                raise Unsettled(f"there are more than {MAX_NAMES:,} names below {path}")
    except TooMuch as error:
        raise TooLong(f"the names below {path}: {error}") from error
    return sorted(names)


def _size(path: str) -> str:
    try:
        info = os.stat(path)
    except OSError:
        return ""
    return str(info.st_size) if stat.S_ISREG(info.st_mode) and not path.endswith(".ipynb") else ""


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _digest(handle: int, path: str, allowance: Allowance) -> str:
    digest = hashlib.sha256()
    while piece := os.read(handle, _CHUNK):
        digest.update(piece)
        try:
            allowance.check()
        except TooMuch as error:
            raise TooLong(f"{path}: {error}") from error
    return digest.hexdigest()
