"""What people hand over when they mean runs: one, several, a sweep, a list, their ids or names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from subagents_nb.errors import RequestError
from subagents_nb.launching import Run, Runs, attach
from subagents_nb.store import FileRuns, StoreHome, open_home


def runs_of(given: Any) -> list[Run]:
    """Return the runs that are meant, each once, in the order given.

    Raises:
        RequestError: it is nothing of the kind.
        UnknownRun, AmbiguousRun: an id or name does not fit one run.
    """
    found: dict[str, Run] = {}
    for run in _each(given):
        found.setdefault(run.id, run)
    return list(found.values())


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


def _each(given: Any) -> Iterable[Run]:
    if isinstance(given, Run):
        return [given]
    if isinstance(given, str):
        return [attach(given)]
    if isinstance(given, Runs):
        return list(given)
    runs = getattr(given, "runs", None)
    if isinstance(runs, Runs):  # a sweep, a comparison
        return list(runs)
    if isinstance(given, Iterable):
        return [run for one in given for run in _each(one)]
    raise RequestError(f"{type(given).__name__} is no run: give a Run, several, a sweep, an id or a name.")
