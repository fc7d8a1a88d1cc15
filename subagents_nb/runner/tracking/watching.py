"""The workspace under watch while other programs work in it: what they open goes into the account of reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from subagents_nb.runner.tracking.inotify import CannotWatch, Watch
from subagents_nb.runner.tracking.moments import Moment, Since


class Account(Protocol):
    """Who takes in what was seen."""

    def untracked(self, why: str) -> None: ...
    def seen(self, *, changed: Iterable[str] = (), idle: bool = False) -> None: ...
    def opened(self, paths: Collection[str], listed: Iterable[str], *, git: bool = False) -> None: ...


class WorkspaceWatch:
    """One watch for all programs of a run; without a root, or where the system can't watch, it sees nothing."""

    def __init__(self, account: Account, root: Path | None, skip: Iterable[str] = ()) -> None:
        self._account = account
        self._root = root
        self._skip = frozenset(skip)  # not watched: what others keep writing there
        self._settling = asyncio.Lock()
        self._watch: Watch | None = None
        self._watched = 0  # calls that are at work under watch, and
        self._idle = 0  # of these, programs that are merely there
        self._blind = False

    @contextlib.asynccontextmanager
    async def during(self, really: bool = True, *, idle: bool = False) -> AsyncIterator[list[str]]:
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
                self._account.untracked("a command was cut off")
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

    @contextlib.contextmanager
    def asking_git(self) -> Iterator[None]:
        """Mark that git is asked by ourselves inside: what it says then is nobody's interest."""
        self._drain()
        asked = self._watch is not None and self._watch.git_asked
        try:
            yield
        finally:
            self._drain()
            if self._watch is not None:
                self._watch.git_asked = asked

    @property
    def at_work(self) -> bool:
        """Whether the workspace is under watch now, for somebody who is at work."""
        return self._watch is not None and self._watched > 0

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the directories under watch, the workspace itself as an empty text."""
        return self._watch.watched_folders if self._watch is not None else ()

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
                        self._account.untracked(f"the link {link} leads out of the workspace")
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
                self._account.untracked(
                    f"a tool answered from its cache {cache}, so nobody knows which files that stood for"
                )
            git, watch.git_asked = watch.git_asked, False
            for seen in (watch.opened, watch.listed, watch.answered):
                seen.clear()
            self._account.seen(changed=sorted(watch.changed_since(began)), idle=idle)
            paths = sorted((opened | {alias for path in opened for alias in watch.aliases(path)}) - changed)
            await asyncio.to_thread(self._account.opened, paths, sorted(listed), git=git)
            self._drain()
            # What we opened ourselves is no news; what changed meanwhile may have been hashed too late.
            watch.git_asked = False
            watch.opened -= opened
            watch.listed -= listed
            for path in sorted(watch.changed - changed):
                if path in paths:
                    self._account.untracked(f"{path} changed while the run was at work")
                else:
                    self._account.seen(changed=[path], idle=True)
            if watch.overflowed:
                self._give_up("too much happened in the workspace to be watched")
            changes += sorted(changed & watch.changed_since(began).keys())

    def _drain(self) -> None:
        if self._watch is not None:
            try:
                self._watch.drain()
            except (CannotWatch, OSError) as error:
                self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self._blind = True
        self._account.untracked(why)
        self.close()

    def close(self) -> None:
        """Watch no longer. On the event loop."""
        watch, self._watch = self._watch, None
        if watch is not None:
            asyncio.get_running_loop().remove_reader(watch.handle)
            watch.close()
