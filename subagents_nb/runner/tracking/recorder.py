"""The account of what a run read of its workspace, and of what it changed there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from pathlib import Path

from subagents_nb.domain.guarded import is_secret
from subagents_nb.domain.reads import FileRead, NamesRead, ReadLog
from subagents_nb.runner.tracking.inotify import CannotWatch, Watch
from subagents_nb.runner.tracking.moments import Moment, Since
from subagents_nb.store.fingerprints import Unsettled, file_sha256, names_below, names_sha256, own_names
from subagents_nb.store.globbing import Allowance
from subagents_nb.store.left import LeftFiles

MAX_FILES = 2000
MAX_BYTES = 2 * 1024**3
_MOST_CHANGED = 500
_LOOK_S = 20.0  # for the names below one directory
_Seen = tuple[str, str, str]  # directory, pattern, include


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
        self._skip = frozenset(skip)  # not watched: what others keep writing there
        self._guard = threading.RLock()
        self._settling = asyncio.Lock()
        self._files: dict[str, str | None] = {}
        self._names: dict[_Seen, tuple[str, ...]] = {}
        self._untracked: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        self._meanwhile: dict[str, None] = {}  # changed while a program of the run was at work, by whomever
        self._beside: dict[str, None] = {}  # changed while one was merely there
        self._own: set[str] = set()
        self._left: dict[str, str | None] = {}
        self._bytes = 0
        self._watch: Watch | None = None
        self._watched = 0  # calls that are at work under watch, and
        self._idle = 0  # of these, programs that are merely there
        self._blind = False

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
    def listing(self, path: str, pattern: str = "*") -> Iterator[None]:
        """Note the names that are seen inside."""
        name = self._inside(path)
        before = self._list(name, pattern) if name else None
        try:
            yield
        finally:
            if name:
                self._compare_names((name, pattern, ""), before)

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
            self._compare_names((name, "**/*", include or ""), names)

    def file(self, path: str) -> None:
        """Note a file as it is now."""
        name = self._inside(path)
        if name:
            self._note(name, self._hash(name))

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

    def changed(self, path: str) -> None:
        """Note a file of the workspace that the run is known to have changed; from here on it is no input."""
        name = self._inside(path) or path
        if self._root is not None:
            with self._guard:
                self._changed[name] = None

    def changed_meanwhile(self, path: str) -> None:
        """Note a file that changed while a program of the run was at work; whose doing it was, nobody knows."""
        name = self._inside(path) or path
        if self._root is not None:
            with self._guard:
                self._meanwhile[name] = None

    def left_here(self) -> frozenset[str]:
        """Return the files that lie in the workspace as earlier runs left them. They are read for that."""
        return self._store.here() if self._store is not None else frozenset()

    def untracked(self, why: str) -> None:
        """Note that something may have been read that nobody saw."""
        if self._root is not None:
            with self._guard:
                self._untracked[why] = None

    # --- other programs ---

    @contextlib.asynccontextmanager
    async def watching(self, really: bool = True, *, idle: bool = False) -> AsyncIterator[list[str]]:
        """Watch the workspace while another program works in it. The list holds what changed, once it is over.

        Several may watch at once: each gets what changed in its own time. Whether that was the program or somebody
        else, another run or the person, the system doesn't say: who knows more says so by `changed`. With `idle` a
        program is merely there.
        """
        changed: list[str] = []
        if not really or self._root is None or not await self._under_watch():
            yield changed
            return
        self._watched += 1
        self._idle += idle
        self._drain()
        began = self._watch.count if self._watch is not None else 0
        try:
            yield changed
        finally:
            self._watched -= 1
            self._idle -= idle
            try:
                await self._settle(changed, began, idle=idle)
            except asyncio.CancelledError:
                self.untracked("a command was cut off")
                raise

    @contextlib.contextmanager
    def looking_around(self) -> Iterator[None]:
        """Mark a look at the workspace of our own: those who merely stand by listed no directory and read no file.

        On the event loop. Where a call is at work meanwhile, nobody can tell, and it counts as the call's.
        """
        self._drain()
        watch = self._watch
        seen = (watch.listed, watch.opened, watch.read_first) if watch is not None else ()
        before = [set(one) for one in seen]
        try:
            yield
        finally:
            self._drain()
            if self._watch is watch and self._watched == self._idle:
                for one, was in zip(seen, before, strict=True):
                    one.intersection_update(was)

    @property
    def watches(self) -> bool:
        """Whether the workspace is under watch now, for somebody who is at work."""
        return self._watch is not None and self._watched > 0

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the directories under watch, the workspace itself as an empty text."""
        return self._watch.places if self._watch is not None else ()

    def was_read(self, path: str) -> bool:
        """Say whether the run has read this file."""
        return self._files.get(path) is not None

    def moment(self) -> Moment | None:
        """Return the present moment for those under watch; None: nothing is watched. On the event loop."""
        self._drain()
        return None if self._watch is None else Moment(self._watch.count, Counter(self._watch.writes))

    def since(self, moment: Moment | None) -> Since | None:
        """Return what was seen since a moment of the same watch; None if it did not see all. On the event loop."""
        now = self.moment()
        if moment is None or now is None or self._watch is None or self._watch.overflowed:
            return None
        watch = self._watch
        return Since(
            until=now,
            changed=watch.changed_since(moment.count),
            writes=now.writes - moment.writes,
            unfinished=frozenset(watch.unfinished),
            read_first=frozenset(watch.read_first),
        )

    async def _under_watch(self) -> bool:
        async with self._settling:
            try:
                if self._watch is None and self._root is not None and not self._blind:
                    self._watch = await asyncio.to_thread(Watch, self._root, skip=self._skip)
                    asyncio.get_running_loop().add_reader(self._watch.handle, self._drain)
                    if (link := self._watch.leads_out) is not None:
                        self.untracked(f"the link {link} leads out of the workspace")
                if self._watch is not None and self._watched == 0:
                    self._watch.forget()
            except CannotWatch as error:
                self._give_up(str(error))
            return self._watch is not None

    async def _settle(self, changes: list[str], began: int, *, idle: bool) -> None:
        async with self._settling:
            if (watch := self._watch) is None:
                return
            self._drain()
            opened, listed, changed = set(watch.opened), set(watch.listed), watch.changed
            for cache in sorted(watch.answered):
                self.untracked(f"a tool answered from its cache {cache}, so nobody knows which files that stood for")
            for seen in (watch.opened, watch.listed, watch.answered):
                seen.clear()
            with self._guard:
                (self._beside if idle else self._meanwhile).update(dict.fromkeys(sorted(watch.changed_since(began))))
            paths = sorted((opened | {alias for path in opened for alias in watch.aliases(path)}) - changed)
            await asyncio.to_thread(self._take_all, paths, sorted(listed))
            self._drain()
            # What we opened ourselves is no news; what changed meanwhile may have been hashed too late.
            watch.opened -= opened
            watch.listed -= listed
            for path in sorted(watch.changed - changed):
                if path in paths:
                    self.untracked(f"{path} changed while the run was at work")
                else:
                    self._beside[path] = None
            if watch.overflowed:
                self._give_up("too much happened in the workspace to be watched")
            changes += sorted(changed & watch.changed_since(began).keys())

    def _take_all(self, paths: list[str], listed: list[str]) -> None:
        if len(paths) > MAX_FILES:
            self.untracked(f"it opened more than {MAX_FILES:,} files")
            return
        for path in paths:
            if is_secret(path):
                self.untracked(f"{path} was read, and no hash of a secret is kept")
            else:
                self._note(path, self._hash(path))
        for folder in listed:
            self._note_names((folder, "*", ""), self._list(folder, "*"))

    def _drain(self) -> None:
        if self._watch is not None:
            try:
                self._watch.drain()
            except (CannotWatch, OSError) as error:
                self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self._blind = True
        self.untracked(why)
        self.close()

    def close(self) -> None:
        """Watch no longer. On the event loop."""
        watch, self._watch = self._watch, None
        if watch is not None:
            asyncio.get_running_loop().remove_reader(watch.handle)
            watch.close()

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
                NamesRead(path=path, pattern=pattern, include=include, sha256=names_sha256(whole, own))
                for (path, pattern, include), seen in sorted(self._names.items())
                for whole in [[os.path.join(self._above, one) for one in seen]]
            )
            return ReadLog(
                files=files,
                names=names,
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

    def _list(self, name: str, pattern: str, include: str = "") -> tuple[str, ...] | None:
        if self._root is None:
            return None
        try:
            return tuple(names_below(self._root, name, pattern, include, allowance=Allowance(seconds=_LOOK_S)))
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
