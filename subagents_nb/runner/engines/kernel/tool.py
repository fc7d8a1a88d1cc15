"""The python tool of one step: a kernel of its own, what it showed written down, what it made kept."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.domain.runs.events import ArtifactMade, EngineEvent
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.runner.engines.engine import InputFiles, PythonEnd, Sandboxed
from subagents_nb.runner.engines.kernel.cell_files import NewFiles
from subagents_nb.runner.engines.kernel.cell_output import Cell
from subagents_nb.runner.engines.kernel.written import LOG, Written
from subagents_nb.runner.engines.step_limits import CELL_SECONDS
from subagents_nb.runner.tracking import ReadRecorder, mentions_of_code
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store.files.disk import Disk

NOTEBOOK = "python.ipynb"
_MOST_BYTES = 5_000_000
_LEFT_OUT = {"output_type": "stream", "name": "stdout", "text": "(left out: the notebook would be too large)\n"}

if TYPE_CHECKING:
    from subagents_nb.runner.engines.kernel.kernel_session import CellEnd, Session

_PREPARE_S = 120.0
_LOST = "all variables are gone, but for the inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a kernel works and with what."""

    step: int
    cwd: Path
    step_dir: Path
    environ: Mapping[str, str]
    inputs: InputFiles | None
    memory_mb: int
    disk: Disk
    sandbox: Sandboxed | None = None
    alone: bool = False  # nobody else works in `cwd`: it is a worktree of the step's own


class PythonTool:
    """Runs code in the step's kernel, one cell at a time; the kernel comes with the first cell."""

    def __init__(
        self,
        around: Surroundings,
        keeper: ArtifactWriter,
        report: Callable[[EngineEvent], None],
        reads: ReadRecorder,
    ) -> None:
        self._around = around
        self._queue_owner = keeper
        self._report = report
        written = Written(around.step_dir / "kernel")
        self._reads = reads
        self._files = NewFiles(around.step, around.cwd, keeper, report, reads, written, alone=around.alone)
        self._record = CellNotebook(around.step_dir / NOTEBOOK, around.disk)
        self._session: Session | None = None
        self._lost = False  # a kernel went with all that it knew
        self._one_at_a_time = asyncio.Lock()

    async def run(self, code: str, *, seconds: float | None = None) -> PythonEnd:
        """Carry out one cell and return what the model is told.

        The cell is interrupted after `seconds` (120 if None). A cell that does not let go takes its kernel along.
        """
        limit = CELL_SECONDS if seconds is None else seconds
        async with self._one_at_a_time:
            cell = Cell(code)
            named = self._reads.asked.by(mentions_of_code(code), self._around.environ)
            async with named, self._files.during(cell):
                session = await self._ready(cell)
                if session is None:
                    return PythonEnd(text=cell.text(), ok=False)
                end = await session.run(code, cell.on_message, seconds=limit)
                await self._after(end, cell, limit)
                self._keep(cell)
            try:
                self._record.add(cell)
            except OSError as error:
                print(f"{NOTEBOOK} not written: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return PythonEnd(text=cell.text(), ok=end == "done" and cell.error is None)

    async def close(self) -> None:
        """End the kernel, if there is one, and everything in its group."""
        session, self._session = self._session, None
        if session is not None:
            try:
                await session.end()
            finally:
                try:
                    await self._files.let_go()
                finally:
                    shutil.rmtree(self._around.step_dir / "kernel", ignore_errors=True)

    async def _ready(self, cell: Cell) -> Session | None:
        from subagents_nb.runner.engines.kernel.kernel_session import KernelProblem

        if self._session is not None and not await self._session.settle():
            await self._drop()
        if self._session is None:
            try:
                self._session = await self._start(cell)
                await self._files.hold()
            except KernelProblem as error:
                cell.say(f"There is no Python here: the kernel can't be had, {error}")
                return None
        if self._lost:
            self._lost = False
            cell.say(f"The kernel was started anew: {_LOST}")
        return self._session

    async def _start(self, cell: Cell) -> Session:
        from subagents_nb.runner.engines.kernel.kernel_session import KernelProblem, Session

        around = self._around
        folder = around.step_dir / "kernel"
        tables = folder / "tables"
        for directory in (folder, tables):
            directory.mkdir(mode=0o700, exist_ok=True)
        session = await Session.start(
            folder, cwd=around.cwd, environ=around.environ, memory_mb=around.memory_mb, sandbox=around.sandbox
        )
        inputs = around.inputs
        records = [one.model_dump(include={"name", "kind", "type", "file", "sha256"}) for one in _records(inputs)]
        given = str(inputs.root) if inputs is not None else ""
        where = (str(folder / LOG), str(around.cwd), json.dumps(self._reads.watch.folders))
        told = (given, json.dumps(records), str(tables), *where)
        prepare = (
            "__import__('subagents_nb.runner.engines.kernel.preload', fromlist=['prepare'])"
            f".prepare(get_ipython(), {', '.join(map(repr, told))})"
        )
        try:
            said = Cell("")
            end = await session.run(prepare, said.on_message, seconds=_PREPARE_S, quiet=True)
        except BaseException:
            await session.end()
            raise
        if end != "done" or said.error is not None:
            await session.end()
            raise KernelProblem(f"its inputs could not be loaded: {said.text()[-500:]}")
        if said.outputs:
            cell.say(said.text())
        return session

    async def _after(self, end: CellEnd, cell: Cell, limit: float) -> None:
        """Say what became of a cell that did not end by itself."""
        if end == "interrupted":
            cell.say(f"Interrupted after {limit:g} seconds, its time limit; the variables are as it left them")
        elif end == "stuck":
            cell.say(f"Ended after {limit:g} seconds, its time limit. It could not be interrupted, so {_LOST}")
        elif end == "died":
            cell.say(f"The kernel ended, perhaps for want of memory ({self._allowed()}): {_LOST}")
        if end in ("stuck", "died"):
            await self._drop()
            self._lost = False  # just said
        if cell.error is not None and "MemoryError" in cell.error:
            cell.say(f"This kernel may use {self._allowed()}; work on less at a time, or delete what is not needed")

    async def _drop(self) -> None:
        self._lost = True
        await self.close()

    def _allowed(self) -> str:
        return f"at most {self._around.memory_mb:,} MB, python_memory_mb in the settings"

    def _keep(self, cell: Cell) -> None:
        """Keep what the cell showed, and name it to the model."""
        tables = self._around.step_dir / "kernel" / "tables"
        made: list[Artifact | None] = [self._queue_owner.figure(self._around.step, data) for data in cell.figures]
        made += [self._queue_owner.table(self._around.step, tables, told) for told in cell.tables]
        for artifact in made:
            if artifact is not None:
                self._report(ArtifactMade(artifact))
                cell.say(f"Kept as {artifact.name}: {artifact.kind}, {artifact.path}")


def _records(inputs: InputFiles | None) -> Sequence[InputRecord]:
    return () if inputs is None else inputs.records


class CellNotebook:
    """The cells so far. Beyond five megabytes the oldest outputs are left out, then the oldest cells."""

    def __init__(self, path: Path, disk: Disk, *, most: int = _MOST_BYTES) -> None:
        self._path = path
        self._disk = disk
        self._most = most
        self._cells: list[str] = []
        self._bare: list[str] = []  # the same cells without their outputs

    def add(self, cell: Cell) -> None:
        """Write down a cell.

        Raises:
            OSError: the disk refuses.
        """
        about = {"id": f"cell-{len(self._cells)}", "cell_type": "code", "metadata": {}, "source": cell.code}
        whole = {**about, "execution_count": cell.number, "outputs": cell.outputs}
        bare = {**about, "execution_count": cell.number, "outputs": [_LEFT_OUT] if cell.outputs else []}
        self._cells.append(_json(whole))
        self._bare.append(_json(bare))
        self._disk.replace(self._path, self._content(), durable=False)

    def _content(self) -> bytes:
        kept: list[str] = []
        room = self._most
        for whole, bare in zip(reversed(self._cells), reversed(self._bare), strict=True):
            chosen = whole if len(whole) < room else bare
            room -= len(chosen)
            if room < 0:
                break
            kept.append(chosen)
        version = ".".join(map(str, sys.version_info[:3]))
        about = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": version},
        }
        cells = ",\n".join(reversed(kept))
        tail = f'"metadata": {json.dumps(about)}, "nbformat": 4, "nbformat_minor": 5'
        return f'{{"cells": [{cells}],\n{tail}}}\n'.encode()


def _json(value: Any) -> str:
    return json.dumps(value)
