"""Find the run a person means: by whole id, by unique name, by unique prefix."""

from __future__ import annotations

from subagents_nb.domain.ids import MIN_PREFIX, is_run_id
from subagents_nb.errors import AmbiguousRun, UnknownRun
from subagents_nb.store.reader import RunReader

_LISTED = 8


def find_run(text: str, runs: RunReader, *, name_scan: int = 2000) -> str:
    """Return the id of the run that `text` names: an exact id, else a unique name, else a unique prefix of 8 or more.

    Names are looked for among the newest `name_scan` runs; of several runs with one name none is chosen.

    Raises:
        UnknownRun: nothing fits; the message says what would.
        AmbiguousRun: several fit; the message lists them.
    """
    wanted = text.strip()
    if not wanted or any(c in wanted for c in "/\\\0\n") or ".." in wanted:
        raise UnknownRun(f"{text!r} can't be a run id or name; see %subagent_status for the runs there are.")
    ids = runs.ids()
    if is_run_id(wanted):
        if wanted in ids:
            return wanted
        raise UnknownRun(f"There is no run {wanted} in this store; see %subagent_status for the runs there are.")
    names = {run_id: runs.snapshot(run_id).name for run_id in ids[:name_scan]}
    named = [run_id for run_id, name in names.items() if name == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        raise AmbiguousRun(_ambiguous(f"Several runs are named {wanted!r}", named, names))
    if wanted.startswith("r-"):
        if len(wanted) < MIN_PREFIX:
            raise UnknownRun(f"The prefix {wanted!r} is too short: give at least {MIN_PREFIX} characters of the id.")
        fitting = [run_id for run_id in ids if run_id.startswith(wanted)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise AmbiguousRun(_ambiguous(f"Several runs begin with {wanted!r}", fitting, names))
    raise UnknownRun(f"No run is named {wanted!r} or has such an id; see %subagent_status for the runs there are.")


def _ambiguous(head: str, ids: list[str], names: dict[str, str]) -> str:
    listed = "\n".join(f"  {run_id}  {names.get(run_id, '')}".rstrip() for run_id in ids[:_LISTED])
    more = f"\n  … and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return f"{head}; name one by its id:\n{listed}{more}"
