"""What git says of a workspace: what is staged, what changed. It only looks; nothing of the workspace's is started."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import threading
from pathlib import Path

from subagents_nb.runner.processes.children import CHILDREN
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.signals import KILL, signal_child
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.git.git import Git, GitProblem

_SECONDS = 20.0
_MAX_BYTES = 16 * 1024 * 1024  # of a diff, or of all untracked files
_MAX_FILES = 2000
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")


class GitState:
    """The git tree around a directory, if there is one. All answers are None where git has none."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd

    async def staged(self) -> dict[str, str] | None:
        """Return the staged files with what each is staged as, by their paths from the repository's root."""
        raw = await self._git("diff", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", *_PLAIN)
        if raw is None:
            return None
        fields = raw.decode("utf-8", "replace").split("\0")
        return {path: state for state, path in zip(fields[::2], fields[1::2], strict=False) if path}

    async def newly_staged(self, before: dict[str, str] | None) -> tuple[str, ...] | None:
        """Return the paths that are staged otherwise than they were before."""
        now = await self.staged()
        return None if now is None else tuple(path for path, state in now.items() if (before or {}).get(path) != state)

    async def diff(self, limit: int) -> str | None:
        """Return the changes since the last commit, cut to so many characters."""
        raw = await self._git("diff", "HEAD", *_PLAIN)
        return None if raw is None else raw.decode("utf-8", "replace")[:limit]

    async def fingerprint(self) -> str | None:
        """Return one value for the whole state: commit, changes, untracked files. None also when it is too much."""
        head = await self._git("rev-parse", "HEAD")
        top = await self._git("rev-parse", "--show-toplevel")
        diff = await self._git("diff", "HEAD", "--binary", "--no-renames", *_PLAIN)
        if head is None or top is None or diff is None:
            return None
        root = Path(os.fsdecode(top.rstrip(b"\n")))
        tracked = await self._git("ls-files", "--stage", "-z", ":/")
        if tracked is None or b"\x00160000 " in b"\0" + tracked:
            return None  # what changes in a submodule is not seen from here
        untracked = await self._git("ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
        if untracked is None:
            return None
        names = sorted(name for name in untracked.split(b"\0") if name)
        contents = await in_thread(lambda: _contents(root, names))
        if contents is None:
            return None
        return hashlib.sha256(b"\0".join([head, hashlib.sha256(diff).digest(), contents])).hexdigest()

    async def _git(self, *args: str) -> bytes | None:
        """Return what a git command says, or None if it fails, takes too long or says too much."""
        at_work: list[subprocess.Popen[bytes]] = []
        left = threading.Event()

        def began(process: subprocess.Popen[bytes]) -> None:
            CHILDREN.began(process.pid, what="tool", poll=process.poll)
            at_work.append(process)
            if left.is_set():
                signal_child(process.pid, KILL)

        def ask() -> bytes | None:
            git = Git(cwd=self._cwd, filters=args[:2] != ("diff", "HEAD"), began=began)  # no other one reads the files
            try:
                return git(*args, within_s=_SECONDS, limit=_MAX_BYTES)
            except GitProblem:
                return None
            finally:
                for process in at_work:
                    CHILDREN.ended(process.pid, process.poll(), group_empty=None)

        try:
            return await in_thread(ask)
        finally:
            left.set()
            for process in at_work:
                signal_child(process.pid, KILL)  # nothing, if it was seen to end


def _contents(root: Path, names: list[bytes]) -> bytes | None:
    """Return a digest over files, none of them followed anywhere; None if they are too many or too big."""
    if len(names) > _MAX_FILES:
        return None
    digest, room = hashlib.sha256(), _MAX_BYTES
    for name in names:
        path = root / os.fsdecode(name)
        try:
            kind = path.lstat()
            if stat.S_ISLNK(kind.st_mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(kind.st_mode) and kind.st_size <= room:
                content = read_plain(path, room, within=root)
            else:
                return None
        except OSError:
            return None
        room -= len(content)
        digest.update(name + b"\0" + oct(kind.st_mode).encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.digest()
