"""The last resort against a runner that was asked to stop and does not even hear it: frozen, stuck, never got going.

A runner answers within a tenth of a second and ends itself by force after its grace. One that answers nothing can only
be ended from outside, and only by who holds proof of its identity: its parent, or whoever watches it by a descriptor.
"""

from __future__ import annotations

import time

from subagents_nb.store.disk import DISK
from subagents_nb.store.layout import RunPaths

UNHEARD_S = 3.0
LOOK_S = 1.0


class LastResort:
    """Remembers since when stops have gone unheard."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._looked = 0.0

    def due(self, runs: dict[str, RunPaths]) -> list[str]:
        """Return the ids of those runs that are to be ended now. Looks once a second at most."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return []
        self._looked = now
        unheard = {run_id for run_id, paths in runs.items() if _is_unheard(paths)}
        self._since = {run_id: self._since.get(run_id, now) for run_id in unheard}
        return [run_id for run_id, since in self._since.items() if now - since >= UNHEARD_S]


def _is_unheard(paths: RunPaths) -> bool:
    try:
        stops = [name for name in DISK.names(paths.control) if name.startswith("stop-") and name.endswith(".json")]
    except OSError:
        return False
    return any(not (paths.answers / name.removeprefix("stop-")).exists() for name in stops)
