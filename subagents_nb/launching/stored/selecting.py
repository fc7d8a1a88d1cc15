"""What people hand over when they mean runs: one, several, a sweep, a comparison, a list, their ids or names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from subagents_nb.errors import RequestError
from subagents_nb.launching.front import attach
from subagents_nb.launching.handle import Run
from subagents_nb.launching.listing import Runs
from subagents_nb.store import FileRuns, StoreHome, open_home


def runs_of(given: Any) -> list[Run]:
    """Return the runs that are meant, each once, in the order given.

    Raises:
        RequestError: it is nothing of the kind.
        UnknownRun, AmbiguousRun: an id or name does not fit one run.
    """
    runs: dict[str, Run] = {}
    for named in runs_or_words(given):
        run = attach(named) if isinstance(named, str) else named
        runs.setdefault(run.id, run)
    return list(runs.values())


def ids_of(given: Any = None) -> tuple[StoreHome, list[str]]:
    """Return the ids of the runs that are meant, and their store; None: all there are. A list is not read again.

    Raises:
        RequestError, UnknownRun, AmbiguousRun: as for `runs_of`.
    """
    if given is None:
        home = open_home(create=False)
        return home, FileRuns(home).ids()
    listed = given if isinstance(given, Runs) else getattr(given, "runs", None)
    if isinstance(listed, Runs):
        return listed.home, list(dict.fromkeys(listed.ids))
    runs = runs_of(given)
    return (runs[0].home if runs else open_home(create=False)), [run.id for run in runs]


def runs_or_words(given: Any) -> Iterator[Run | str]:
    """Yield the runs that are meant, in the order given; where an id or a name stands, that, as it is.

    Raises:
        RequestError: it is nothing of the kind.
    """
    listed = given if isinstance(given, Runs) else getattr(given, "runs", None)
    if isinstance(given, Run | str):
        yield given
    elif isinstance(listed, Runs):  # of a sweep, a comparison
        yield from listed
    elif isinstance(given, Iterable):
        for one in given:
            yield from runs_or_words(one)
    else:
        raise RequestError(f"{type(given).__name__} is no run: give a Run, several, a sweep, an id or a name.")
