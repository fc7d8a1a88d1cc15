"""A question of a run below another one stands once on the board: in the row of the topmost run that shows it."""

from __future__ import annotations

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.tree_rows import asker_of

Asked = tuple[str, str]  # who asks, and the question's id there


class Carried:
    """Knows of each run on the board which runs stand below it, and which questions it shows."""

    def __init__(self) -> None:
        self._below: dict[str, frozenset[str]] = {}
        self._shows: dict[str, frozenset[Asked]] = {}
        self._names: dict[str, str] = {}

    def take(self, snapshot: Snapshot) -> frozenset[str]:
        """Note how a run stands; return the runs below it whose rows may be others now."""
        run_id = snapshot.run_id
        below_before, shown_before = self._below.get(run_id, frozenset()), self._shows.get(run_id, frozenset())
        if not snapshot.tree or snapshot.ended:
            self.drop(run_id)
        else:
            self._names[run_id] = snapshot.name
            self._below[run_id] = frozenset(row.run_id for row in snapshot.tree)
            self._shows[run_id] = frozenset(_asked(snapshot).values())
        changed = shown_before ^ self._shows.get(run_id, frozenset())
        return below_before | self._below.get(run_id, frozenset()) if changed else frozenset()

    def drop(self, run_id: str) -> None:
        """Forget a run that is no more on the board."""
        for known in (self._below, self._shows, self._names):
            known.pop(run_id, None)

    def without(self, snapshot: Snapshot) -> tuple[Snapshot, str]:
        """Return a run without the questions that a run above it shows, and that one's name if there were any."""
        status = snapshot.status
        above = [one for one, below in self._below.items() if snapshot.run_id in below]
        if status is None or not above or not snapshot.questions:
            return snapshot, ""
        asked = _asked(snapshot)
        shown = {one: run_id for run_id in above for one in self._shows[run_id]}
        left = {question_id for question_id, one in asked.items() if one not in shown}
        by = next((self._names[shown[one]] for one in asked.values() if one in shown), "")
        tree = tuple(
            row.model_copy(
                update={"questions": tuple(q for q in row.questions if f"{row.path}/{q.question_id}" in left)}
            )
            for row in status.tree
        )
        own = tuple(one for one in status.questions if one.question_id in left or one.to != "person")
        reduced = status.model_copy(update={"questions": own, "tree": tree})
        return snapshot.model_copy(update={"status": reduced}), by


def _asked(snapshot: Snapshot) -> dict[str, Asked]:
    """Return of each question that a run shows to the person who asks it."""
    paths = {row.path: row.run_id for row in snapshot.tree}
    return {
        one.question_id: (
            paths.get(asker_of(one.question_id), snapshot.run_id),
            one.question_id.rpartition("/")[2],
        )
        for one in snapshot.questions
    }
