"""What a run made beside its answer: figures, tables, files. Nothing is loaded before somebody asks for it."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pydantic import ValidationError

from subagents_nb.domain.kept.archives import stays_inside
from subagents_nb.domain.kept.retention import size
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.store.files.disk import DISK

if TYPE_CHECKING:
    from subagents_nb.launching.handle import Run

PARQUET = "application/vnd.apache.parquet"
_SHOWN_IMAGES = ("image/png", "image/jpeg")
_SHOWN_BYTES = 20_000_000


class RunArtifact:
    """One file that a run left. Its content is checked against its sha256 at each look."""

    def __init__(self, run: Run, record: Artifact) -> None:
        self._run = run
        self.record = record

    @property
    def name(self) -> str:
        """Return what it is called: fig1, table1; of a file, its path in the workspace."""
        return self.record.name or self.record.path

    @property
    def kind(self) -> str:
        """Return `figure`, `table` or `file`."""
        return self.record.kind

    @property
    def media_type(self) -> str:
        """Return its media type."""
        return self.record.media_type

    @property
    def size(self) -> int:
        """Return its size in bytes."""
        return self.record.size

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of its content."""
        return self.record.sha256

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return rows and columns of a table, height and width of a figure."""
        return self.record.shape

    @property
    def step(self) -> int | None:
        """Return the number of the step that made it."""
        return self.record.step

    @property
    def path(self) -> Path:
        """Return where it lies.

        Raises:
            StoreError: it is gone, or no longer what the run left.
        """
        place = self._path()
        with self._opened(place) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise self._changed()
        return place

    @property
    def bytes(self) -> bytes:
        """Return its content; errors as of `path`."""
        data: bytes = self._read(self._path())
        return data

    @property
    def text(self) -> str:
        """Return its content as text; what is no UTF-8 is shown as question marks."""
        return self.bytes.decode("utf-8", "replace")

    def to_pandas(self) -> Any:
        """Return a table as a pandas DataFrame.

        Raises:
            RequestError: it is no table.
            StoreError: it is gone or was changed.
        """
        import pandas

        return pandas.read_parquet(io.BytesIO(self._table()))

    def to_polars(self) -> Any:
        """Return a table as a polars DataFrame; errors as of `to_pandas`."""
        import polars

        return polars.read_parquet(io.BytesIO(self._table()))

    def to_arrow(self) -> Any:
        """Return a table as an arrow Table; errors as of `to_pandas`."""
        import pyarrow
        import pyarrow.parquet

        return pyarrow.parquet.read_table(pyarrow.BufferReader(self._table()))

    def load(self) -> Any:
        """Return what it is to a program: a DataFrame of pandas, or of polars where there is no pandas; text; bytes.

        A figure stays what this is, which shows itself.
        """
        if self.media_type == PARQUET:
            return self.to_pandas() if importlib.util.find_spec("pandas") is not None else self.to_polars()
        if self.media_type in _SHOWN_IMAGES:
            return self
        return self.text if self.media_type.startswith("text/") else self.bytes

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Show a figure as a picture; everything else as a line."""
        del include, exclude
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self.media_type in _SHOWN_IMAGES and self.size <= _SHOWN_BYTES:
            bundle[self.media_type] = base64.b64encode(self.bytes).decode("ascii")
        return bundle

    def __repr__(self) -> str:
        shape = "" if self.shape is None else f", {' x '.join(map(str, self.shape))}"
        return f"<{self.kind} {one_line(self.name)}{shape}, {size(self.size)}>"

    def _table(self) -> Any:
        if self.media_type != PARQUET:
            raise RequestError(f"{self.name} is no table but {self.media_type}; take its .bytes or its .path.")
        return self.bytes

    def _path(self) -> Path:
        kept, named = self.record.path, self.record.workspace or ""
        if not stays_inside(kept or named):  # as an archive may say
            raise StoreError(f"The artifact {self.name} of run {self._run.name} lies in no place of the run's.")
        return self._run.home.run(self._run.id).root / kept if kept else Path(self._run.plan.cwd) / named

    def _read(self, place: Path) -> Any:
        with self._opened(place) as file:
            # The size that is recorded may come from an archive: it is no number of bytes to make room for.
            data = file.read() if os.fstat(file.fileno()).st_size == self.size else b""
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise self._changed()
        return data

    def _opened(self, place: Path) -> io.BufferedReader:
        try:
            return DISK.open_reading(place)
        except Unreadable as error:
            raise StoreError(f"The artifact {self.name} of run {self._run.name} can't be read: {error}.") from error

    def _changed(self) -> StoreError:
        what = f"The artifact {self.name} of run {self._run.name}"
        return StoreError(f"{what} is not what the run left: the file was changed.")


class RunArtifacts(Sequence[RunArtifact]):
    """The artifacts of a run in the order they were made, by number or by name; those so far, while it runs."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._all = tuple(RunArtifact(run, record) for record in _records(run))

    @overload
    def __getitem__(self, which: int | str) -> RunArtifact: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[RunArtifact]: ...
    def __getitem__(self, which: int | str | slice) -> RunArtifact | Sequence[RunArtifact]:
        """Return one artifact, or some. Of several with one name it is the last."""
        if not isinstance(which, str):
            return self._all[which]
        found = next((one for one in reversed(self._all) if one.name == which), None)
        if found is None:
            there = ", ".join(one.name for one in self._all) or "none"
            raise KeyError(f"{self._run.name} has no artifact {which!r} (it has: {there}){self._why(which)}")
        return found

    def _why(self, name: str) -> str:
        result = self._run.status.result
        if result is None or name not in result.changed_meanwhile:
            return ""
        return (
            ". This file changed while the run was at work, by it or by others, so it is nobody's: give each run a "
            "name of its own to write to, or worktree=True"
        )

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[RunArtifact]:
        return iter(self._all)

    @property
    def figures(self) -> tuple[RunArtifact, ...]:
        """Return the figures, and the files that are pictures by their names."""
        return tuple(one for one in self._all if one.kind == "figure" or one.media_type.startswith("image/"))

    @property
    def tables(self) -> tuple[RunArtifact, ...]:
        """Return the tables."""
        return tuple(one for one in self._all if one.kind == "table")

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._all)) or "<no artifacts>"


def _records(run: Run) -> list[Artifact]:
    """Return what the run's last word names; without one, what its events do."""
    result = run.status.result
    if result is not None:
        return list(result.artifacts)
    newest: dict[tuple[int | None, str, str], Artifact] = {}
    for event in run.events():
        if event.get("type") == "artifact" and (record := _record(event)) is not None:
            # A file that is kept again takes the place of what it was.
            same = (record.step, record.kind, record.name)
            newest.pop(same, None)
            newest[same] = record
    return list(newest.values())


def _record(event: Mapping[str, Any]) -> Artifact | None:
    try:
        return Artifact.model_validate({name: event[name] for name in Artifact.model_fields if name in event})
    except ValidationError:
        return None
