"""What an exporter is. One is found by its name in the entry point group `subagents_nb.exporters`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Protocol

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.exporters.run_record import RunRecord
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.installed import entry_points

GROUP = "subagents_nb.exporters"


class Link(Value):
    """Where an exported run lies."""

    target: str  # the server, project or file; no credentials
    remote_id: str
    url: str | None = None
    notes: tuple[str, ...] = ()  # what could not be taken along


class Exporter(Protocol):
    """One way to bring runs elsewhere. An object is made for each export, with the options of the call.

    A class that inherits from this one needs `name`, `target`, `contents` and `send`; the rest where it is not so.
    `contents` decides what is sent and does no IO but reading files of the run; secrets are taken out of it before
    `send` gets it. `send` must be idempotent by the run's id: sent twice, a run is there once.
    """

    name: ClassVar[str]

    @property
    def target(self) -> str:
        """Return where runs go, without credentials."""
        ...

    def available(self) -> str | None:
        """Return why it can't be used here and what to do about it; None: it can be used."""
        return None

    def contents(self, record: RunRecord) -> dict[str, Any]:
        """Return everything that is sent of a run, as plain JSON data; of files their paths and digests."""
        ...

    def has(self, link: Link) -> bool:  # noqa: ARG002 - for those who can tell
        """Return whether the run is still there, as far as that is cheap to tell; where it is not, yes."""
        return True

    def send(self, contents: dict[str, Any], record: RunRecord) -> Link:
        """Send it, in place of what is there of the run already.

        Raises:
            ExportError: it did not arrive, or not whole.
            OSError: a file can't be written; the report names it.
        """
        ...


class FolderExporter(Exporter):
    """An exporter whose runs are files of a local folder, one for each run."""

    folder: str

    @property
    def target(self) -> str:
        """Return the folder."""
        return str(Path(self.folder).expanduser().absolute())

    def available(self) -> str | None:
        """Return why no file can be written there."""
        return "only local folders can be written to" if "://" in self.folder else None

    def has(self, link: Link) -> bool:
        """Return whether the file is still there."""
        return Path(self.target, link.remote_id).is_file()

    def write(self, name: str, text: str) -> Link:
        """Write a file, in place of an earlier one of its name. Raises: OSError."""
        path = Path(self.target, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        DISK.replace(path, text.encode("utf-8", "replace"), durable=False)
        return Link(target=self.target, remote_id=name, url=str(path))


def exporters() -> tuple[str, ...]:
    """Return the names of the exporters there are."""
    return tuple(sorted(entry_points(GROUP)))


def exporter(name: str, **options: Any) -> Exporter:
    """Return the exporter of this name.

    Raises:
        RequestError: there is none, it can't be loaded, or it has no such option.
    """
    points = entry_points(GROUP)
    if name not in points:
        there = ", ".join(sorted(points)) or "none; install this package anew"
        raise RequestError(f"There is no exporter {name!r}; there are: {there}.")
    try:
        instance: Exporter = points[name].load()(**options)
    except TypeError as error:
        raise RequestError(f"The exporter {name} can't be used like that: {one_line(str(error), 200)}.") from error
    except (ImportError, AttributeError) as error:
        raise RequestError(f"The exporter {name} can't be loaded: {one_line(str(error), 200)}.") from error
    return instance
