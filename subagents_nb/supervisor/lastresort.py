"""The last resort against a runner that was asked to stop and does not even hear it: frozen, stuck, never got going.

A runner answers within a tenth of a second and ends itself by force after its grace. One that answers nothing can only
be ended from outside, and only by who holds proof of its identity: its parent, or whoever watches it by a descriptor.
A runner whose disk is full can't answer; it marks what it heard instead, and is left alone.
"""

from __future__ import annotations

import time

from subagents_nb.domain.records import RunStatus
from subagents_nb.errors import Unreadable
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.reader import read_document
from subagents_nb.store.requests import is_heard, stops_of

UNHEARD_S = 3.0
STUCK_S = 30.0  # for one that still writes its status: it should have heard long ago
LOOK_S = 1.0


class LastResort:
    """Remembers since when stops of whole runs have gone unheard, and the last sign of life."""

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}
        self._signs: dict[str, tuple[float, str]] = {}
        self._looked = 0.0

    def due(self, runs: dict[str, RunPaths]) -> list[str]:
        """Return the ids of those runs that are to be ended now. Looks once a second at most."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return []
        self._looked = now
        signs = {run_id: sign for run_id, paths in runs.items() if (sign := _unheard(paths)) is not None}
        self._asked = {run_id: self._asked.get(run_id, now) for run_id in signs}
        before, self._signs = self._signs, {}
        for run_id, sign in signs.items():
            known = before.get(run_id)
            self._signs[run_id] = known if known is not None and known[1] == sign else (now, sign)
        return [
            run_id
            for run_id, (since, _) in self._signs.items()
            if now - since >= UNHEARD_S or now - self._asked[run_id] >= STUCK_S
        ]


def _unheard(paths: RunPaths) -> str | None:
    """Return the moment of a run's last status if a stop of the whole run is unheard; None if there is none."""
    if all(is_heard(paths, request) for request in stops_of(paths)):
        return None
    try:
        status = read_document(paths.status, RunStatus, paths.root.name)
    except Unreadable:
        return ""
    return None if status.stopping else status.updated_at
