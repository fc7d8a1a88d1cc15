"""What programs ask of the workspace and of their environment without leaving a trace that a watch could see."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from subagents_nb.domain.agents.environment import comparable
from subagents_nb.domain.runs.reads import GitRead, VariableRead
from subagents_nb.runner.tracking.mentions import Mentions
from subagents_nb.runner.tracking.watching import WorkspaceWatch
from subagents_nb.store.files.fingerprints import Unsettled, variable_sha256

_MOST_BYTES = 64 * 1024**2  # what a text names and nobody opened is hashed up to this size


class Files(NamedTuple):
    """The account of files, as far as it is needed here."""

    watch: WorkspaceWatch
    inside: Callable[[str], str | None]  # a path as it stands in the account
    hash: Callable[[str], str | None]
    mentioned: Callable[[str, str | None], None]
    untracked: Callable[[str], None]


class AskedWithoutTrace:
    """Notes files that a text names, there or not, variables, and the state of git."""

    def __init__(self, files: Files, root: Path | None, skip: tuple[str, ...] = ()) -> None:
        self._files = files
        self._root = root
        self._skip = skip
        self._guard = threading.Lock()
        self._variables: dict[str, str | None] = {}
        self._git: str | None = None

    @contextlib.asynccontextmanager
    async def by(self, mentions: Mentions, environ: Mapping[str, str]) -> AsyncIterator[None]:
        """Note what the text of a program names that runs inside. What changes meanwhile is the watch's to tell."""
        if self._root is None or not any(mentions):
            yield
            return
        names = [name for one in mentions.files if (name := self._files.inside(one)) is not None]
        with self._files.watch.looking_around():
            before = await asyncio.to_thread(lambda: {name: self._hash(name) for name in names})
        try:
            yield
        finally:
            with self._files.watch.looking_around():
                await asyncio.to_thread(self._note, mentions, environ, before)

    def note_variables(self, names: Iterable[str], environ: Mapping[str, str]) -> None:
        """Note variables that somebody wants to know; no hash of a secret is kept."""
        for name in names:
            if self._root is not None and comparable(name, environ.get(name, "")):
                sha256 = variable_sha256(environ.get(name))
                if self._variables.setdefault(name, sha256) != sha256:
                    self._files.untracked(f"the variable {name} changed while the run was at work")

    def note_git(self) -> None:
        """Note what git says of the workspace now; blocks."""
        from subagents_nb.store.git.asked_state import git_state

        if self._root is None:
            return
        try:
            state = git_state(self._root, self._skip)
        except Unsettled as error:
            self._files.untracked(str(error))
            return
        with self._guard:
            if self._git not in (None, state):
                self._files.untracked("what git says of the workspace changed while the run was at work")
            self._git = state

    def variables(self) -> tuple[VariableRead, ...]:
        """Return the variables that were asked for."""
        return tuple(VariableRead(name=name, sha256=sha256) for name, sha256 in sorted(self._variables.items()))

    def git(self) -> GitRead | None:
        """Return what git was asked; None if it was not."""
        return None if self._git is None else GitRead(sha256=self._git, without=self._skip)

    def _note(self, mentions: Mentions, environ: Mapping[str, str], before: Mapping[str, str | None]) -> None:
        for name, sha256 in before.items():
            if sha256 != "" and self._hash(name) == sha256:
                self._files.mentioned(name, sha256)
        self.note_variables(mentions.variables, environ)
        if mentions.git:
            self.note_git()

    def _hash(self, name: str) -> str | None:
        """Return the hash of a file that a text names, None if there is none; empty for what is not compared."""
        try:
            info = os.stat(os.path.join(self._root or "", name))
        except OSError:
            return None
        return self._files.hash(name) if stat.S_ISREG(info.st_mode) and info.st_size <= _MOST_BYTES else ""
