"""`export(runs, to=..., **options)`: one exporter, many runs, a report for each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import ExportError, RequestError, SubagentsError
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.ledger import digest_of, keep, ledger_of
from subagents_nb.exporters.protocol import Exporter, Link, exporter
from subagents_nb.launching import Run, attach
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.stored.selecting import runs_or_words
from subagents_nb.plain_text import plain


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one run."""

    run_id: str
    name: str
    outcome: Literal["created", "updated", "unchanged", "failed"]
    link: Link | None = None
    error: str | None = None

    def __str__(self) -> str:
        """Return it in one line."""
        if self.link is None:
            return plain(f"{self.name}: failed: {self.error}")
        notes = f" ({'; '.join(self.link.notes)})" if self.link.notes else ""
        return plain(f"{self.name}: {self.outcome}: {_where(self.link)}{notes}")


def _where(link: Link) -> str:
    """Say where a run is now. A file is named from here, or by its name alone: notebooks are saved and handed on."""
    if not link.url or not os.path.isabs(link.url):
        return link.url or link.remote_id
    here = f"{os.getcwd()}{os.sep}"
    return link.url.removeprefix(here) if link.url.startswith(here) else link.remote_id


class Export(Sequence[Sent]):
    """The report of an export, one line a run."""

    def __init__(self, to: str, sent: Iterable[Sent]) -> None:
        self.to = to
        self._sent = tuple(sent)

    @overload
    def __getitem__(self, index: int) -> Sent: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sent]: ...
    def __getitem__(self, index: int | slice) -> Sent | Sequence[Sent]:
        """Return what became of one run, or of some."""
        return self._sent[index]

    def __len__(self) -> int:
        return len(self._sent)

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent)

    def __repr__(self) -> str:
        return "\n".join(map(str, self._sent)) or f"<nothing to export to {self.to}>"

    @property
    def failed(self) -> tuple[Sent, ...]:
        """Return those that did not arrive."""
        return tuple(one for one in self._sent if one.outcome == "failed")


def export(runs: Any, to: str, **options: Any) -> Export:
    """Send ended runs to another tool and say for each what became of it. The runs stay as they are.

    A run that was sent to the same place before is sent again only if something about it changed, a new score for
    example, and then takes the place of what is there. Secret values of this process, and what looks like a key, are
    taken out of everything that is text.

    Args:
        runs: a Run, several, a sweep, a comparison, what `runs()` gives, or ids or names; each run is sent once.
        to: the name of an exporter; `exporters()` lists those of this package and of others.
        options: the exporter's own, such as `url`, `experiment` or `prompts=True`.

    Raises:
        RequestError: there is no such exporter or option, or it can't be used here; or these are no runs.
        ExportError: a single run did not arrive, or none of several did. If only some did not, see `.failed`.
    """
    refuse_runs("runs are the person's to export")
    chosen = {one if isinstance(one, str) else one.id: one for one in runs_or_words(runs)}
    target = exporter(to, **options)
    if why := target.available():
        raise RequestError(f"The exporter {to} can't be used: {why}")
    result = Export(to, [_send_one(target, run) for run in chosen.values()])
    if result and len(result.failed) == len(result):
        listed = "\n".join(f"  {one.name}: {one.error}" for one in result)
        raise ExportError(f"Nothing was exported to {to}; the runs are as they were.\n{listed}")
    return result


def _send_one(made: Exporter, named: Run | str) -> Sent:
    run_id = name = str(named) if isinstance(named, str) else named.id
    try:
        run = attach(named) if isinstance(named, str) else named
        run_id, name = run.id, run.name
        return _send(made, run)
    except SubagentsError as error:
        return Sent(run_id, name, "failed", error=str(error))
    except OSError as error:
        where = os.path.basename(str(error.filename or "")) or "a file"
        return Sent(run_id, name, "failed", error=one_line(f"{where} can't be written: {error.strerror or error}", 300))
    except Exception as error:  # noqa: BLE001 - an exporter of anybody's
        return Sent(run_id, name, "failed", error=one_line(f"{type(error).__name__}: {error}", 300))


def _send(made: Exporter, run: Run) -> Sent:
    record = gather(run)
    contents = Redactor(os.environ, shapes=True).data(made.contents(record))
    sha256 = digest_of(contents)
    paths = run.home.run(run.id)
    with ledger_of(paths, made.name) as ledger:
        before = ledger.of(made.target)
        if before is not None and before.sha256 == sha256 and made.has(before.link):
            return Sent(run.id, record.name, "unchanged", link=before.link)
        link = made.send(contents, record)
        keep(paths, ledger, link, sha256)
        return Sent(run.id, record.name, "created" if before is None else "updated", link=link)
