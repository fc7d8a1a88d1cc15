"""What git says of a workspace: what is staged, what changed. It only looks; no lock is taken and no hook is run."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from subagents_nb.runner.children import CHILDREN
from subagents_nb.runner.engines.aside import aside

_SECONDS = 20.0
_MAX_BYTES = 16 * 1024 * 1024  # of a diff, or of all untracked files
_MAX_FILES = 2000
# The workspace is not ours: what its configuration could have git start is left out.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")


class GitState:
    """The git tree around a directory, if there is one. All answers are None where git has none."""

    def __init__(self, cwd: Path, environ: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environ = {**environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def staged(self) -> dict[str, str] | None:
        """Return the staged files with what each is staged as, by their paths from the repository's root."""
        raw = await self._git("diff", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", *_PLAIN)
        if raw is None:
            return None
        fields = raw.decode("utf-8", "replace").split("\0")
        return {path: state for state, path in zip(fields[::2], fields[1::2], strict=False) if path}

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
        untracked = await self._git("ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
        if untracked is None:
            return None
        names = sorted(name for name in untracked.split(b"\0") if name)
        contents = await aside(lambda: _contents(root, names))
        if contents is None:
            return None
        return hashlib.sha256(b"\0".join([head, hashlib.sha256(diff).digest(), contents])).hexdigest()

    async def _git(self, *args: str) -> bytes | None:
        """Return what a git command says, or None if it fails, takes too long or says too much."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *_QUIET,
                *args,
                cwd=self._cwd,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return None
        CHILDREN.began(process.pid, what="tool")
        try:
            async with asyncio.timeout(_SECONDS):
                said = await _read(process)
                return said if said is not None and await process.wait() == 0 else None
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            CHILDREN.ended(process.pid, process.returncode, group_empty=None)


async def _read(process: asyncio.subprocess.Process) -> bytes | None:
    said = bytearray()
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    while chunk := await process.stdout.read(65536):
        said += chunk
        if len(said) > _MAX_BYTES:
            return None
    return bytes(said)


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
                content = path.read_bytes()
            else:
                return None
        except OSError:
            return None
        room -= len(content)
        digest.update(name + b"\0" + oct(kind.st_mode).encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.digest()
