"""Hand the line on: whoever gives a place back sees that somebody keeps the turns of those that wait for it."""

from __future__ import annotations

from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.detached import bring_supervisor_up
from subagents_nb.store.waiting.line import standing


def hand_on(home: StoreHome) -> None:
    """If runs wait and no supervisor is up, start one; it takes them over. Returns when it is there to stay."""
    if standing(home) and not any(probe(path) == "held" for path in home.supervisor.glob("*.lock")):
        bring_supervisor_up(home)
