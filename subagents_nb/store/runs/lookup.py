"""Find the run a person means: by whole id, by name, by unique prefix."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable

from subagents_nb.domain.values.ids import MIN_PREFIX, is_run_id, launched_ms, names_itself
from subagents_nb.domain.values.words import ago
from subagents_nb.errors import AmbiguousRun, UnknownRun
from subagents_nb.store.runs.reader import FileRuns

# How near a run was launched to whoever names it. Of one from an archive only the archive says so: own ones come first.
HERE, IN_PROJECT, IMPORTED, ELSEWHERE = 0, 1, 2, 3
_LISTED = 8
_NAMED = 2000
_SHOWN_PATHS = 12


def find_run(text: str, runs: FileRuns, *, nearness: Callable[[str], int] | None = None) -> str:
    """Return the id of the run that `text` names: an exact id, else a name, else a unique prefix of 8 or more.

    `ROOT/PATH` is a run below another one, by its path there.

    Names are looked for among the newest 2,000 runs. A generated name ends in the id of its run and means that
    one. A given name may be given again: the newest run of this name in this notebook is meant, else the newest in this
    project, else one of an archive, as `nearness` tells; of several that lie elsewhere none is chosen.

    Raises:
        UnknownRun: nothing fits; the message says what would.
        AmbiguousRun: several fit; the message lists them, with age and state.
    """
    wanted = text.strip()
    root, _, path = wanted.partition("/")
    if root and path:
        known = ""
        with contextlib.suppress(UnknownRun):
            known = find_run(root, runs, nearness=nearness)
        if known:
            return _below(known, path, runs)
    if not wanted or any(c in wanted for c in "/\\\0\n") or ".." in wanted:
        raise UnknownRun(f"{text!r} can't be a run id or name; see %subagent_status for the runs there are.")
    ids = runs.ids()
    if is_run_id(wanted):
        if wanted in ids:
            return wanted
        raise UnknownRun(f"There is no run {wanted} in this store; see %subagent_status for the runs there are.")
    named = [run_id for run_id in ids[:_NAMED] if runs.snapshot(run_id).name == wanted]
    if (found := _meant(wanted, named, nearness)) is not None:
        return found
    if named:
        raise AmbiguousRun(_ambiguous(f"Several runs are named {wanted!r}", named, runs))
    if wanted.startswith("r-"):
        if len(wanted) < MIN_PREFIX:
            raise UnknownRun(f"The prefix {wanted!r} is too short: give at least {MIN_PREFIX} characters of the id.")
        fitting = [run_id for run_id in ids if run_id.startswith(wanted)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise AmbiguousRun(_ambiguous(f"Several runs begin with {wanted!r}", fitting, runs))
    raise UnknownRun(f"No run is named {wanted!r} or has such an id; see %subagent_status for the runs there are.")


def _below(root: str, path: str, runs: FileRuns) -> str:
    """Return the run below a root that a path names, as its tree is shown."""
    seen = runs.snapshot(root)
    run_id = next((row.run_id for row in seen.tree if row.path == path), "")
    if is_run_id(run_id):
        return run_id
    shown = ", ".join(row.path for row in seen.tree[:_SHOWN_PATHS])
    there = f"below it are {shown}" if shown else "it has none below it"
    raise UnknownRun(f"Run {seen.name} has no run {path!r} below it: {there}.")


def _meant(name: str, named: list[str], nearness: Callable[[str], int] | None) -> str | None:
    """Return which of the runs of one name, newest first, is meant; None if that can't be told."""
    if len(named) < 2:
        return named[0] if named else None
    own = [run_id for run_id in named if names_itself(name, run_id)]
    if own:
        return own[0] if len(own) == 1 else None
    if nearness is None:
        return None
    nearest: tuple[int, str | None] = ELSEWHERE, None
    for run_id in named:
        near = nearness(run_id)
        if near == HERE:
            return run_id
        if near < nearest[0]:
            nearest = near, run_id
    return nearest[1]


def _ambiguous(head: str, ids: list[str], runs: FileRuns) -> str:
    listed = "\n".join(_rows(ids[:_LISTED], runs))
    more = f"\n  … and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return f"{head}; name one by its id:\n{listed}{more}"


def _rows(ids: Iterable[str], runs: FileRuns) -> Iterable[str]:
    now_ms = time.time() * 1000
    for run_id in ids:
        snapshot = runs.snapshot(run_id)
        state = snapshot.state.value if snapshot.state is not None else "unreadable"
        yield f"  {run_id}  {snapshot.name}  {state}, {ago((now_ms - launched_ms(run_id)) / 1000)}"
