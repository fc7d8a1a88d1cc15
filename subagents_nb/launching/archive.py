"""Carry runs to another machine, where a notebook finds them again without any key."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from subagents_nb.domain.runs.tree_rows import ids_of_rows
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.gathering.lineage import meant_run
from subagents_nb.store import FileRuns, open_home
from subagents_nb.store.kept.zip_archive import read_archive, write_archive


def export_runs(
    runs: Sequence[str], target: str | os.PathLike[str], *, project: str | os.PathLike[str] | None = None
) -> list[str]:
    """Write runs that have ended into a new zip file, and return their ids.

    With a run come those below it that are still there. `project` is the directory that stands for the one given at
    the import; the current one if None. Tasks, prompts and answers are in the archive, which only you may read; keys,
    logs, hosts and absolute paths of ours are not. The secret values of this process, and what looks like a key, are
    taken out of what was said and printed; artifacts and inputs go as they are.

    Raises:
        UnknownRun, AmbiguousRun: a name does not fit one run.
        RequestError: a run is live or worked outside of the project, or the file is there already.
        StoreError: a run can't be read, or the file can't be written.
    """
    refuse_runs("runs are the person's to export")
    home = open_home(create=False)
    reader = FileRuns(home)
    chosen: dict[str, None] = {}
    for run_id in dict.fromkeys(meant_run(home, text) for text in runs):
        below = ids_of_rows(reader.snapshot(run_id).tree)
        chosen |= dict.fromkeys((run_id, *(one for one in below if home.run(one).root.is_dir())))
    for run_id in chosen:
        snapshot = reader.snapshot(run_id)
        if not snapshot.ended:
            raise RequestError(
                f"{snapshot.name} is {snapshot.state}: wait for its end, or stop it, and export it then."
            )
    place = Path(project) if project is not None else Path.cwd()
    write_archive(home, list(chosen), Path(target), project=place, redact=Redactor(os.environ, shapes=True))
    return list(chosen)


def import_runs(
    source: str | os.PathLike[str], *, project: str | os.PathLike[str] | None = None
) -> tuple[list[str], list[str]]:
    """Take the runs of an archive in; return the ids of the new ones, and of those that were here already.

    They are looked at and reused like others, in `project` (the current directory if None); none is resumed or
    launched again, since what it would do was written by somebody else.

    Raises:
        RequestError: it is no archive of runs, or one that must not be trusted.
        StoreError: it can't be read, or the store can't be written.
    """
    refuse_runs("runs are the person's to import")
    place = Path(project) if project is not None else Path.cwd()
    if not place.is_dir():
        raise RequestError(f"There is no directory {place}.")
    return read_archive(open_home(), Path(source), project=place)
