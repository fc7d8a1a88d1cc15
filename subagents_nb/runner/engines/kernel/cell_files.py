"""What the cells of one step do to the files of the workspace: which they make, kept as artifacts, and which change."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path

from subagents_nb.domain.runs.events import ArtifactMade, ChangedMeanwhile, EngineEvent, FileChanged, Noticed
from subagents_nb.runner.engines.kernel.cell_output import Cell
from subagents_nb.runner.engines.kernel.written import Whose, Written
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.tracking import Moment, ReadRecorder, Since
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter

MOST = 20_000
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})
Stamp = tuple[int, int, int]

_NOT_KEPT = (
    f"The workspace has more than {MOST:,} entries and can't be watched, so nobody knows which files are new: none of "
    "them is kept as an artifact"
)


class NewFiles:
    """Tells the step's own files from what else changes in the workspace, and keeps those that are new.

    What changes while a cell is at work may be the doing of a neighbour or of a person as well. So only that is the
    step's which its kernel is known to have written, and nobody else besides; `alone` says that nobody else is there.
    From `hold` to `let_go` the workspace is under watch, between the cells too: a kernel's threads don't end with them.
    """

    def __init__(
        self,
        step: int,
        cwd: Path,
        keeper: ArtifactWriter,
        report: Callable[[EngineEvent], None],
        reads: ReadRecorder,
        written: Written,
        *,
        alone: bool = False,
    ) -> None:
        self._step = step
        self._cwd = cwd
        self._keeper = keeper
        self._report = report
        self._reads = reads
        self._written = written
        self._alone = alone
        self._watch = contextlib.AsyncExitStack()
        self._holds = False
        self._moment: Moment | None = None  # up to where changes are judged
        self._known: dict[str, Stamp] | None = None  # None: there are too many
        self._left: frozenset[str] = frozenset()  # what earlier runs of ours left, as it was before the first cell
        self._said = False

    async def hold(self) -> None:
        """Keep the workspace under watch from here on."""
        if not self._holds:
            self._holds = True
            await self._watch.enter_async_context(self._reads.watch.during(idle=True))

    async def let_go(self) -> None:
        """Watch no longer, when what came after the last cell is judged as well."""
        if not self._holds:
            return
        self._holds = False
        await self._judge(None)
        self._written.restart()
        await self._watch.aclose()

    @contextlib.asynccontextmanager
    async def during(self, cell: Cell) -> AsyncIterator[None]:
        """Note what the cell makes and changes that is carried out inside."""
        anew = not (self._holds and self._reads.watch.at_work)
        if anew:
            self._known = await self._look()
            with self._reads.watch.looking_around():
                self._left = await in_thread(self._reads.left_here)
            self._moment = None
            self._written.take()
            self._written.end(None)
        else:
            await self._judge(None)
        async with self._reads.watch.during():
            if anew:
                self._moment = self._reads.watch.moment()
            yield
        await self._judge(cell)

    async def _judge(self, cell: Cell | None) -> None:
        """Say what became of the files since the last time, and whose doing it is."""
        before, known = self._known, self._known or {}
        after, since = await self._now(cell)
        self._written.take()
        written = {path for path, stamp in after.items() if known.get(path) != stamp}
        gone = known.keys() - after.keys()
        touched = {*written, *gone, *(since.changed if since is not None else self._written.names)}
        whose: dict[str, Whose] = {path: self._whose(path, since) for path in touched}
        for path in sorted(touched):
            if whose[path] != "unknown":
                self._report(FileChanged(path))
            if whose[path] != "own" and cell is not None:
                self._report(ChangedMeanwhile(path))
        own = {path for path in touched if whose[path] == "own"}
        new = {path for path in own & written if path not in known or self._is_output(path, since)}
        again = {path for path in own if self._keeper.has(self._cwd, path)}
        await self._keep(sorted(new | again), after)
        self._written.end(since)
        if before is not None:
            self._known = after
        self._moment = since.until if since is not None else self._reads.watch.moment()

    async def _now(self, cell: Cell | None) -> tuple[dict[str, Stamp], Since | None]:
        """Return the files as they are now, and what the watch saw up to after that."""
        since = self._reads.watch.since(self._moment)
        if since is not None:
            changed = since.changed
            new = {path for path in changed if changed[path] or self._keeper.has(self._cwd, path)}
            paths = {*self._known, *changed} if self._known is not None else new
            return await in_thread(lambda: stamps(self._cwd, paths)), self._reads.watch.since(self._moment)
        after = await self._look() if self._known is not None else None
        if after is None and cell is not None:
            self._say_not_kept(cell)
        return after or {}, None

    def _whose(self, path: str, since: Since | None) -> Whose:
        return "own" if self._alone else self._written.whose(path, since)

    def _is_output(self, path: str, since: Since | None) -> bool:
        """Say whether a file that was there is what an earlier run left, and this one only wrote over it."""
        was_read = since is None or path in since.read_first or self._reads.was_read(path)
        return path in self._left and not was_read

    async def _look(self) -> dict[str, Stamp] | None:
        with self._reads.watch.looking_around():
            return await in_thread(lambda: look(self._cwd))

    async def _keep(self, paths: list[str], stamped: Mapping[str, Stamp]) -> None:
        if paths:
            with self._reads.watch.looking_around():
                await in_thread(lambda: self._keep_all(paths, stamped))

    def _keep_all(self, paths: list[str], stamped: Mapping[str, Stamp]) -> None:
        for path in paths:

            def as_judged(path: str = path) -> bool:
                return stamps(self._cwd, (path,)).get(path) == stamped.get(path)

            artifact = self._keeper.file(self._step, self._cwd, path, still=as_judged)
            if artifact is None and os.path.lexists(self._cwd / path):
                continue
            # Its own: as long as it lies there unchanged, or is gone as now, the run can be reused.
            self._reads.keep(path)
            if artifact is not None:
                self._report(ArtifactMade(artifact))

    def _say_not_kept(self, cell: Cell) -> None:
        if not self._said:
            self._said = True
            cell.say(f"{_NOT_KEPT}. Show a table or a figure to have it kept")
            self._report(Noticed("files-not-kept", f"{_NOT_KEPT}."))


def look(root: Path) -> dict[str, Stamp] | None:
    """Return each plain file with what changes when it is written; None if there are too many to look at."""
    stamps_found: dict[str, Stamp] = {}
    seen = 0
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in _entries(os.path.join(root, folder)):
            seen += 1
            if seen > MOST:
                return None
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _counts(entry.name):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    stamps_found[path] = _stamp(entry.stat(follow_symlinks=False))
            except OSError:
                continue
    return stamps_found


def stamps(root: Path, paths: Iterable[str]) -> dict[str, Stamp]:
    """Return the same of those of these paths that are plain files such as a look finds. No directory is opened."""
    stamped: dict[str, Stamp] = {}
    for path in paths:
        try:
            info = os.lstat(os.path.join(root, path))
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(info.st_mode) and all(map(_counts, path.split("/"))):
            stamped[path] = _stamp(info)
    return stamped


def _counts(name: str) -> bool:
    return not name.startswith(".") and name not in _LEFT_OUT


def _stamp(info: os.stat_result) -> Stamp:
    return info.st_mtime_ns, info.st_size, info.st_ino


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return
