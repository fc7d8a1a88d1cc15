"""The rows of a run and of all below it, as its parent reads them from its documents."""

from __future__ import annotations

from collections.abc import Iterator

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow
from subagents_nb.domain.values.words import one_line


def rows_of(seen: Snapshot | None, run_id: str, path: str, agent: str) -> Iterator[TreeRow]:
    """Yield how a run stands, and all below it; None: nothing was read of it yet."""
    if seen is None or (seen.head is None and seen.verdict is None):
        yield TreeRow(path=path, run_id=run_id, agent=agent)
        return
    live = seen.status if not seen.ended else None
    step = seen.steps[0] if seen.steps else None
    yield TreeRow(
        path=path,
        run_id=run_id,
        name=seen.name,
        agent=agent,
        label=one_line(seen.plan.steps[0].label, 160) if seen.plan is not None and seen.plan.steps else "",
        state=seen.state or RunState.LOST,
        usage=seen.usage,
        elapsed_s=seen.elapsed_s,
        activity=getattr(step, "activity", ""),
        waits=live is not None and live.waits,
        questions=live.questions if live is not None else (),
        error=one_line(seen.error, 300) if seen.error else None,
    )
    if seen.head is not None:
        yield from seen.head.tree


def settled(row: TreeRow, seen: Snapshot) -> TreeRow:
    """Return the row of a run below one that has ended, as the run's own documents have it; one that is gone is lost.

    Whoever was to keep the row wrote nothing any more when the run below came to its end.
    """
    if seen.state is None:
        return row.model_copy(update={"state": RunState.LOST, "questions": (), "activity": "", "waits": False})
    own = next(rows_of(seen, row.run_id, row.path, row.agent))
    return own.model_copy(update={"label": row.label, "name": own.name or row.name})
