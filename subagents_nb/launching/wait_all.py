"""Wait for several runs."""

from __future__ import annotations

from collections.abc import Sequence

from subagents_nb.domain.values.words import parse_duration
from subagents_nb.errors import RequestError
from subagents_nb.launching.following.waiting import WaitInterrupted, still_running_text, wait_all
from subagents_nb.launching.gathering.lineage import meant_run
from subagents_nb.launching.listing import Runs, list_runs
from subagents_nb.store import FileRuns, open_home


def wait_for(ids: Sequence[str] = (), *, timeout: float | str | None = None) -> Runs:
    """Wait for the named runs, or for all live ones, to end; return them as they stand. They go on after a timeout.

    Raises:
        UnknownRun, AmbiguousRun: a name does not fit one run.
        RequestError: the timeout is none.
        WaitInterrupted: somebody interrupted the wait; the runs go on.
    """
    home = open_home(create=False)
    reader = FileRuns(home)
    try:
        seconds = None if timeout is None else parse_duration(timeout)
    except ValueError as error:
        raise RequestError(str(error)) from error
    chosen = (
        [meant_run(home, text) for text in ids]
        if ids
        else list_runs(home, state="live", agent=None, name=None, limit=None).ids
    )
    try:
        wait_all(home, chosen, seconds)
    except KeyboardInterrupt:
        names = [(reader.snapshot(run_id).name, run_id) for run_id in chosen]
        raise WaitInterrupted(still_running_text(names)) from None
    return Runs(home, [reader.snapshot(run_id) for run_id in chosen])
