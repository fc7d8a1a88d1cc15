"""What was exported where: `exports/NAME.json` in the run's directory, so that a second export sends nothing twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Literal

from subagents_nb.domain.values.base import Document, Value, sha256_text, stable_json
from subagents_nb.errors import ExportError, Unreadable
from subagents_nb.exporters.protocol import Link
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.codec import decode, encode
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.lock import hold
from subagents_nb.store.layout import RunPaths

_KEPT = 50  # targets


class Entry(Value):
    """One target that has the run."""

    link: Link
    sha256: str  # of what was sent
    at: str


class ExportLedger(Document):
    """All targets of one exporter that have the run, the latest last."""

    kind: Literal["export"] = "export"
    exporter: str
    entries: tuple[Entry, ...] = ()

    def of(self, target: str) -> Entry | None:
        """Return the entry of a target."""
        return next((entry for entry in reversed(self.entries) if entry.link.target == target), None)

    def having(self, entry: Entry) -> ExportLedger:
        """Return the ledger with an entry in the place of the older one of its target."""
        others = tuple(one for one in self.entries if one.link.target != entry.link.target)
        return self.model_copy(update={"entries": (*others, entry)[-_KEPT:]})


def digest_of(contents: dict[str, Any]) -> str:
    """Return what tells contents apart."""
    return sha256_text(stable_json(contents))


@contextlib.contextmanager
def ledger_of(paths: RunPaths, exporter: str) -> Iterator[ExportLedger]:
    """Give the ledger of an exporter, while nobody else exports this run with it.

    Raises:
        ExportError: somebody else is at it, or the run's directory can't be written.
    """
    folder = paths.root / "exports"
    try:
        with contextlib.suppress(FileExistsError):
            DISK.make_dir(folder)
        held = hold(folder / f".{exporter}.lock")
    except BlockingIOError as error:
        raise ExportError("another process exports this run just now; try again when it is done") from error
    except OSError as error:
        raise ExportError(f"the run's directory can't be written ({error.strerror or error})") from error
    try:
        yield _read(paths, exporter)
    finally:
        os.close(held)


def keep(paths: RunPaths, ledger: ExportLedger, link: Link, sha256: str) -> None:
    """Write down that a target has the run."""
    entry = Entry(link=link, sha256=sha256, at=utc_now())
    path = paths.root / "exports" / f"{ledger.exporter}.json"
    try:
        DISK.replace(path, encode(ledger.having(entry)), durable=False)
    except OSError as error:
        raise ExportError(f"it arrived, but {path.name} could not be kept ({error.strerror or error})") from error


def _read(paths: RunPaths, exporter: str) -> ExportLedger:
    run_id = paths.root.name
    try:
        return decode(DISK.read(paths.root / "exports" / f"{exporter}.json"), ExportLedger, run_id)
    except Unreadable:
        # Missing or damaged: exporters find the run by its id where they sent it.
        return ExportLedger(run_id=run_id, exporter=exporter)
