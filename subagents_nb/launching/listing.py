"""Many runs at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, overload

from subagents_nb.above import above
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.handle import Run
from subagents_nb.plain_text import plain
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.raw_reader import read_raw
from subagents_nb.store.runs.reader import uncollected
from subagents_nb.store.unended import unended
from subagents_nb.supervisor.warm.reconcile import reconcile


class Runs(Sequence[Run]):
    """Runs, newest first, as they were when they were listed; each handle reads anew."""

    def __init__(self, home: StoreHome, snapshots: Sequence[Snapshot], *, hidden: int = 0) -> None:
        self._home = home
        self.snapshots = tuple(snapshots)
        self.hidden = hidden

    @property
    def home(self) -> StoreHome:
        """Return the store that holds them."""
        return self._home

    @property
    def ids(self) -> list[str]:
        """Return their ids."""
        return [snapshot.run_id for snapshot in self.snapshots]

    def stop(self, reason: str = "") -> Runs:
        """Ask those that are live to stop, and return them; the others have ended already."""
        stopping = [run.id for run in self if run.stop(reason)]
        return Runs(self._home, [snapshot for snapshot in self.snapshots if snapshot.run_id in stopping])

    def to_pandas(self) -> Any:
        """Return them as a pandas.DataFrame, with the columns of `frame`. Raises RequestError without pandas."""
        return self._frame().to_pandas()

    def to_polars(self) -> Any:
        """Return them as a polars.DataFrame, likewise."""
        return self._frame().to_polars()

    def to_arrow(self) -> Any:
        """Return them as a pyarrow.Table, likewise."""
        return self._frame().to_arrow()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write them as a parquet file, likewise."""
        self._frame().to_parquet(path)

    def _frame(self) -> Any:
        return above("frame")(self)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return one run's handle, or a part of the list."""
        if isinstance(index, slice):
            return Runs(self._home, self.snapshots[index])
        return Run(self._home, self.snapshots[index].run_id)

    def __len__(self) -> int:
        return len(self.snapshots)

    def __iter__(self) -> Iterator[Run]:
        return (Run(self._home, snapshot.run_id) for snapshot in self.snapshots)

    def _repr_html_(self) -> str:
        return str(above("listed_html")(self))

    def __repr__(self) -> str:
        names = ", ".join(f"{s.name} {s.state or 'unreadable'}" for s in self.snapshots[:10])
        more = ", …" if len(self.snapshots) > 10 else ""
        return plain(f"<{len(self.snapshots)} runs: {names}{more}>") if self.snapshots else "<no runs>"


def list_runs(
    home: StoreHome,
    *,
    state: str | None,
    agent: str | None,
    name: str | None,
    limit: int | None,
    only: Callable[[str], bool] | None = None,
) -> Runs:
    """List the runs of a store whose ids `only` lets in; live ones whose process is gone get their verdict first.

    What is hidden, or asked for in vain, because it has ended is not even read.
    """
    reader = FileRuns(home)
    snapshots: list[Snapshot] = []
    hidden = 0
    filtered = (state, agent, name) != (None, None, None)
    ids = reader.ids()
    if state in ("live", "asking"):
        ids = unended(home, ids, reader.has_terminal_record)
    elif limit is not None and not filtered and only is None:
        below = ids[limit:]
        live = [one for one in unended(home, ids, reader.has_terminal_record) if one <= below[0]] if below else []
        hidden, ids = len(below) - len(live), [*ids[:limit], *live]
    with uncollected():
        for run_id in ids:
            if only is not None and not only(run_id):
                continue
            over = limit is not None and len(snapshots) >= limit
            if over and not filtered and reader.has_terminal_record(run_id):
                hidden += 1
                continue
            current = _judged(home, reader, run_id)
            if not fits(current, state=state, agent=agent, name=name):
                continue
            if over and current.ended:
                hidden += 1
                continue
            snapshots.append(current)
    return Runs(home, snapshots, hidden=hidden)


def about(home: StoreHome, **named: str | None) -> Callable[[str], bool] | None:
    """Return what tells, of a run's id, whether its plan says these of it, by the names that `runs` has for them.

    None if nothing is asked.
    """
    asked = {name: value for name, value in named.items() if value is not None}
    if not asked:
        return None

    def fits(run_id: str) -> bool:
        plan = read_raw(home, run_id, ("plan.json",))["plan.json"] or {}
        part = plan.get("experiment")
        part = part if isinstance(part, dict) else {}
        place, origin = (one if isinstance(one, dict) else {} for one in (part.get("cell"), plan.get("origin")))
        says: Mapping[str, Collection[Any]] = {
            "experiment": (part.get("name"),),
            "tag": plan.get("tags") or (),
            "sweep": (place.get("sweep"),),
            "notebook": (origin.get("notebook"),),
            "cell": (origin.get("cell_id"),),
            "phase": _named(plan, "phase"),
            "lane": _named(plan, "lane"),
            "workflow": (plan.get("workflow"),),
            "workflow_key": (plan.get("workflow_key"),),
        }
        return all(value in says[name] for name, value in asked.items())

    return fits


def _named(plan: Mapping[str, Any], what: str) -> set[str]:
    """Return the phases or lanes that a plan names: of the run, of its steps and of its stages."""
    parts = [plan, *(plan.get("steps") or ()), *(plan.get("items") or ())]
    named = [part.get(what) for part in parts if isinstance(part, dict)]
    return {one for one in named if isinstance(one, str)}


def _judged(home: StoreHome, reader: FileRuns, run_id: str) -> Snapshot:
    snapshot = reader.snapshot(run_id)
    if (snapshot.state is None or not snapshot.ended) and reconcile(home, [run_id]):
        return reader.snapshot(run_id)
    return snapshot


def fits(snapshot: Snapshot, *, state: str | None, agent: str | None, name: str | None) -> bool:
    """Say whether a run is one of those that are asked for, as far as it says so itself."""
    if state in ("live", "asking"):
        return not snapshot.ended and (state == "live" or bool(snapshot.questions))
    return (
        (state is None or snapshot.state == state)
        and (agent is None or snapshot.agent == agent)
        and (name is None or snapshot.name == name)
    )
