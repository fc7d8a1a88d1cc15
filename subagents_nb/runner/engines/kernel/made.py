"""What the cells of one step do to the files of the workspace: which they make, kept as artifacts, and which change."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from subagents_nb.domain.events import ArtifactMade, EngineEvent, FileChanged, Noticed
from subagents_nb.runner.artifacts import ArtifactKeeper
from subagents_nb.runner.engines.aside import aside
from subagents_nb.runner.engines.kernel.cells import Cell
from subagents_nb.runner.engines.kernel.files import MOST, Stamp, look, stamps
from subagents_nb.runner.tracking import Changes, ReadRecorder

_NOT_KEPT = (
    f"The workspace has more than {MOST:,} entries and can't be watched, so nobody knows which files are new: none of "
    "them is kept as an artifact"
)


class MadeFiles:
    """Looks at the workspace before and after each cell.

    From `hold` to `let_go` it is under watch, between the cells too: a kernel's threads do not end with their cell.
    What changes between two cells may be theirs or that of a person who works there as well, so it is no artifact.
    """

    def __init__(
        self, step: int, cwd: Path, keeper: ArtifactKeeper, report: Callable[[EngineEvent], None], reads: ReadRecorder
    ) -> None:
        self._step = step
        self._cwd = cwd
        self._keeper = keeper
        self._report = report
        self._reads = reads
        self._watch = contextlib.AsyncExitStack()
        self._holds = False
        self._known: dict[str, Stamp] | None = None  # None: there are too many
        self._kept: dict[str, Stamp | None] = {}
        self._said = False

    async def hold(self) -> None:
        """Keep the workspace under watch from here on."""
        if not self._holds:
            self._holds = True
            await self._watch.enter_async_context(self._reads.watching(idle=True))

    async def let_go(self) -> None:
        """Watch no longer, and keep once more those artifacts that are not what they were after their cell."""
        if not self._holds:
            return
        self._holds = False
        await self._watch.aclose()
        now = await aside(lambda: stamps(self._cwd, self._kept))
        again = [path for path, stamp in self._kept.items() if now.get(path) != stamp]
        await self._keep(again)

    @contextlib.asynccontextmanager
    async def during(self, cell: Cell) -> AsyncIterator[None]:
        """Note what the cell makes and changes that is carried out inside."""
        if looked := not (self._holds and self._reads.watches):
            self._known = await self._look()
        async with self._reads.watching() as changed:
            if self._known is not None and not looked:
                paths = {*self._known, *changed.earlier}
                self._known = await aside(lambda: stamps(self._cwd, paths))
            yield
        await self._tell(cell, self._known, changed)

    async def _tell(self, cell: Cell, before: dict[str, Stamp] | None, changed: Changes) -> None:
        paths = changed.new if before is None else {*before, *changed}
        if changed.seen:
            after: dict[str, Stamp] | None = await aside(lambda: stamps(self._cwd, paths))
        else:
            after = await self._look() if before is not None else None
        if after is None:
            self._say_not_kept(cell)
            after = {}
        known = before if before is not None else {}
        written = {path for path, stamp in after.items() if known.get(path) != stamp}
        if before is not None:
            self._known = after
        for path in sorted({*written, *changed}):
            self._report(FileChanged(path))
        again = {path for path in {*written, *changed} if self._keeper.has(self._cwd, path)}
        new = {path for path in written if path not in known}
        await self._keep(sorted(new | again))

    async def _look(self) -> dict[str, Stamp] | None:
        with self._reads.looking_around():
            return await aside(lambda: look(self._cwd))

    async def _keep(self, paths: Sequence[str]) -> None:
        if paths:
            with self._reads.looking_around():
                await aside(lambda: self._keep_all(paths))

    def _keep_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            artifact = self._keeper.file(self._step, self._cwd, path)
            if artifact is None and os.path.lexists(self._cwd / path):
                continue
            # Its own: as long as it lies there unchanged, or is gone as now, the run can be reused.
            self._reads.keep(path)
            self._kept[path] = stamps(self._cwd, (path,)).get(path)
            if artifact is not None:
                self._report(ArtifactMade(artifact))

    def _say_not_kept(self, cell: Cell) -> None:
        if not self._said:
            self._said = True
            cell.say(f"{_NOT_KEPT}. Show a table or a figure to have it kept")
            self._report(Noticed("files-not-kept", f"{_NOT_KEPT}."))
