"""The account of what a run read of its workspace, and of what it changed there."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from subagents_nb.domain.agents.guarded import is_secret
from subagents_nb.domain.agents.memory import MemoryScope
from subagents_nb.domain.runs.reads import FileRead, MemoryRead, NamesRead, ReadLog, ReadsSoFar
from subagents_nb.runner.tracking.asked import AskedWithoutTrace, Files
from subagents_nb.runner.tracking.watching import WorkspaceWatch
from subagents_nb.store.files.fingerprints import (
    Unsettled,
    file_sha256,
    names_below,
    names_sha256,
    own_names,
)
from subagents_nb.store.files.globbing import Allowance
from subagents_nb.store.runs.left import LeftFiles
from subagents_nb.store.runs.writer import RunWriter

MAX_FILES = 2000
MAX_BYTES = 2 * 1024**3
_MOST_CHANGED = 500
_LOOK_S = 20.0  # for the names below one directory
_Seen = tuple[str, str, str, bool]  # directory, pattern, include, whether with sizes
_MOST_MENTIONED_BYTES = 64 * 1024**2  # what a text names and nobody opened is hashed up to this size


class ReadRecorder:
    """One for all steps of a run; may be used from several threads. Without a root it notes nothing.

    A hash is taken before and after a tool read, and noted only if both are the same: so it is of what the tool saw.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        skip: Iterable[str] = (),
        left: LeftFiles | None = None,
        above: str = "",
    ) -> None:
        self._root = root
        self._above = above  # the way to it from the run's directory, from which names are hashed
        self._store = left  # remembers for later runs what this one leaves
        self._guard = threading.RLock()
        self._files: dict[str, str | None] = {}
        self._names: dict[_Seen, tuple[str, ...]] = {}
        self._untracked: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        self._meanwhile: dict[str, None] = {}  # changed while a program of the run was at work, by whomever
        self._beside: dict[str, None] = {}  # changed while one was merely there
        self._skip = tuple(skip)
        self._own: set[str] = set()
        self._left: dict[str, str | None] = {}
        self.memory: dict[tuple[MemoryScope, str], str | None] = {}  # those that were read, as they were left
        self._bytes = 0
        self.watch = WorkspaceWatch(self, root, self._skip)
        self.asked = AskedWithoutTrace(
            Files(self.watch, self._inside, self._hash, self._mentioned, self.untracked), root, self._skip
        )

    # --- the file tools ---

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Note a file that is read inside, whatever comes of it."""
        name = self._inside(path)
        before = self._hash(name) if name else None
        try:
            yield
        finally:
            if name:
                self._compare(name, before)

    @contextlib.contextmanager
    def listing(self, path: str, pattern: str = "*", *, sizes: bool = False) -> Iterator[None]:
        """Note the names that are seen inside, or the names and sizes."""
        name = self._inside(path)
        seen = (name or "", pattern, "", sizes)
        before = self._list(*seen) if name else None
        try:
            yield
        finally:
            if name:
                self._compare_names(seen, before)

    @contextlib.contextmanager
    def searching(self, path: str, include: str | None = None) -> Iterator[None]:
        """Note all files below a directory, or the one file, whose content is looked through inside."""
        name = self._inside(path)
        if name is None or self._root is None or not (self._root / name).is_dir():
            with self.reading(path):
                yield
            return
        names = self._list(name, "**/*", include or "")
        files = [one for one in names or () if not is_secret(one) and os.path.isfile(os.path.join(self._root, one))]
        if len(files) > MAX_FILES:
            self.untracked(f"it searched more than {MAX_FILES:,} files")
            files = []
        before = {one: self._hash(one) for one in files}
        try:
            yield
        finally:
            for one in files:
                self._compare(one, before[one])
            self._compare_names((name, "**/*", include or "", False), names)

    def seen(self, *, changed: Iterable[str] = (), idle: bool = False) -> None:
        """Note what changed under watch, by whomever; `idle` if no program of the run was at work."""
        with self._guard:
            (self._beside if idle else self._meanwhile).update(dict.fromkeys(changed))

    def opened(self, paths: Collection[str], listed: Iterable[str], *, git: bool = False) -> None:
        """Note the files that were opened under watch, the directories that were listed, as they are now, and whether
        git was asked about more than the last commit.
        """
        if git:
            self.asked.note_git()
        if len(paths) > MAX_FILES:
            self.untracked(f"it opened more than {MAX_FILES:,} files")
            return
        for path in paths:
            if is_secret(path):
                self.untracked(f"{path} was read, and no hash of a secret is kept")
            else:
                self._note(path, self._hash(path))
        for folder in listed:
            seen = (folder, "*", "", True)
            self._note_names(seen, self._list(*seen))

    # --- what it writes ---

    def own(self, path: str) -> None:
        """Say that a file is the run's own to write: it counts neither as read nor as changed."""
        with self._guard:
            self._own.add(os.path.normpath(path))

    def keep(self, path: str) -> None:
        """Note an output file as the run leaves it."""
        self.own(path)
        name = self._inside(path)
        if name:
            with self._guard:
                self._left[name] = sha256 = self._hash(name)
            if self._store is not None:
                self._store.note(name, sha256)

    def changed(self, path: str, *, meanwhile: bool = False) -> None:
        """Note a file of the workspace that the run is known to have changed; from here on it is no input.

        With `meanwhile`, it changed while a program of the run was at work: whose doing it was, nobody knows.
        """
        name = self._inside(path) or path
        if self._root is not None:
            with self._guard:
                (self._meanwhile if meanwhile else self._changed)[name] = None

    def left_here(self) -> frozenset[str]:
        """Return the files that lie in the workspace as earlier runs left them. They are read for that."""
        return self._store.here() if self._store is not None else frozenset()

    def _mentioned(self, name: str, sha256: str | None) -> None:
        """Note a file that a program may have asked about, there or not, unless more is known of it."""
        with self._guard:
            if not any(name in one for one in (self._files, self._meanwhile, self._beside)):
                self._note(name, sha256)

    def untracked(self, why: str) -> None:
        """Note that something may have been read that nobody saw."""
        if self._root is not None:
            with self._guard:
                self._untracked[why] = None

    def was_read(self, path: str) -> bool:
        """Say whether the run has read this file."""
        return self._files.get(path) is not None

    # --- the account ---

    def log(self) -> ReadLog | None:
        """Return what is known so far."""
        if self._root is None:
            return None
        with self._guard:
            own = own_names(os.path.join(self._above, one) for one in self._own)
            files = tuple(FileRead(path=p, sha256=h) for p, h in sorted(self._files.items()) if p not in self._own)
            if len(files) > MAX_FILES:
                self.untracked(f"it read more than {MAX_FILES:,} files")
                files = ()
            names = tuple(
                NamesRead(path=path, pattern=pattern, include=include, sizes=sizes, sha256=names_sha256(whole, own))
                for (path, pattern, include, sizes), seen in sorted(self._names.items())
                for whole in [[os.path.join(self._above, one) for one in seen]]
            )
            return ReadLog(
                files=files,
                names=names,
                memory=tuple(MemoryRead(scope=s, path=p, sha256=h) for (s, p), h in sorted(self.memory.items())),
                variables=self.asked.variables(),
                git=self.asked.git(),
                untracked=tuple(self._untracked),
                own=tuple(sorted(self._own)),
                left=tuple(FileRead(path=path, sha256=sha256) for path, sha256 in sorted(self._left.items())),
                changed=tuple(path for path in self._changed if path not in self._own)[:_MOST_CHANGED],
                meanwhile=self._by_whomever(self._meanwhile),
                beside=self._by_whomever(self._beside, self._meanwhile),
            )

    def _by_whomever(self, seen: Iterable[str], *besides: Collection[str]) -> tuple[str, ...]:
        known: tuple[Collection[str], ...] = (self._changed, self._own, *besides)
        return tuple(path for path in seen if not any(path in one for one in known))[:_MOST_CHANGED]

    def _compare(self, name: str, before: str | None) -> None:
        after = self._hash(name)
        if before != after:
            self.untracked(f"{name} changed while it was read")
        self._note(name, after)

    def _compare_names(self, seen: _Seen, before: tuple[str, ...] | None) -> None:
        after = self._list(*seen)
        if before != after:
            self.untracked(f"the names in {seen[0]} changed while they were read")
        self._note_names(seen, after)

    def _note(self, name: str, sha256: str | None) -> None:
        with self._guard:
            if name in self._changed or name in self._own:
                return
            if self._files.setdefault(name, sha256) != sha256:
                self.untracked(f"{name} changed while the run was at work")

    def _note_names(self, seen: _Seen, names: tuple[str, ...] | None) -> None:
        if names is None:
            return
        with self._guard:
            own, before = own_names(self._own), self._names.setdefault(seen, names)
            if names_sha256(before, own) != names_sha256(names, own) and not (self._changed or self._meanwhile):
                self.untracked(f"the names in {seen[0]} changed while the run was at work")

    def _hash(self, name: str) -> str | None:
        """Return the hash of a file of the workspace as it is now; None if there is none, or it can't be told."""
        if self._root is None:
            return None
        try:
            with contextlib.suppress(OSError):
                self._bytes += (self._root / name).stat().st_size if name not in self._files else 0
            if self._bytes > MAX_BYTES:
                self.untracked("it read more than can be hashed in good time")
                return None
            return file_sha256(self._root, name)
        except Unsettled as error:
            self.untracked(str(error))
            return None

    def _list(self, name: str, pattern: str, include: str = "", sizes: bool = False) -> tuple[str, ...] | None:
        if self._root is None:
            return None
        try:
            allowance = Allowance(seconds=_LOOK_S)
            return tuple(names_below(self._root, name, pattern, include, sizes=sizes, allowance=allowance))
        except Unsettled as error:
            self.untracked(str(error))
            return None

    def _inside(self, path: str) -> str | None:
        """Return a path as it stands in the account: relative to the workspace, links in it kept."""
        if self._root is None or "\0" in path:
            return None
        top = os.path.realpath(self._root)
        place = os.path.join(top, path)
        if ".." in Path(path).parts or (os.path.isabs(path) and not place.startswith(top + os.sep)):
            place = os.path.realpath(place)
        name = os.path.relpath(os.path.normpath(place), top)
        return None if name.startswith("..") or is_secret(name) else name


class KeptReads:
    """Writes the account of reads whenever it has changed."""

    def __init__(self, run_id: str, log: Callable[[], ReadLog | None], writer: RunWriter) -> None:
        self._run_id = run_id
        self._log = log
        self._writer = writer
        self._kept: ReadLog | None = ReadLog()

    def keep(self) -> None:
        """Write what is known now; a disk that refuses is asked again the next time, and keeps nobody from working."""
        log = self._log()
        if log is None or log == self._kept:
            return
        with contextlib.suppress(OSError):
            self._writer.reads(ReadsSoFar(run_id=self._run_id, reads=log))
            self._kept = log
