"""Look whether a run's process lives. The decision itself is `domain.judge`; here are the eyes."""

from __future__ import annotations

from subagents_nb.domain.judge import Liveness, Seen, judge_liveness
from subagents_nb.domain.records import Identity
from subagents_nb.store.layout import RunPaths
from subagents_nb.store.lock import probe
from subagents_nb.supervisor.identity import boot_id, host_id, is_zombie, pid_namespace, start_ticks


def look(identity: Identity | None, paths: RunPaths) -> Seen:
    """Return what can be seen of the process that `identity` names, and of the run's lock."""
    lock = probe(paths.lock)
    ticks: int | None = None
    readable = True
    zombie = False
    if identity is not None and lock != "held":
        try:
            ticks = start_ticks(identity.pid)
            zombie = ticks is not None and is_zombie(identity.pid)
        except PermissionError:
            readable = False
    return Seen(
        lock=lock,
        host=host_id(),
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        exists=ticks is not None,
        readable=readable,
        zombie=zombie,
        ticks=ticks,
    )


def liveness_of(identity: Identity | None, paths: RunPaths) -> Liveness:
    """Say whether the run's process is alive, dead, or can't be told."""
    return judge_liveness(identity, look(identity, paths))
