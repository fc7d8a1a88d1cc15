"""Look whether a run's process lives. The decision itself is `domain.runs.postmortem`; here are the eyes."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import Liveness, Seen, judge_liveness
from subagents_nb.domain.runs.records import Identity
from subagents_nb.store.clock import boot_id
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import RunPaths
from subagents_nb.supervisor.processes.identity import host_id, is_zombie, pid_namespace, start_ticks


def look(identity: Identity | None, paths: RunPaths, token: str | None = None) -> Seen:
    """Return what can be seen of the process that `identity` names, and of the run's lock, launched under `token`."""
    return _look(identity, lock=probe(paths.lock), token=token)


def _look(identity: Identity | None, *, lock: Literal["held", "free"] | None, token: str | None) -> Seen:
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
        token=token,
    )


def liveness_of(identity: Identity | None, paths: RunPaths, token: str | None = None) -> Liveness:
    """Say whether the run's process is alive, dead, or can't be told. `token` is that of the run's plan, if known."""
    return judge_liveness(identity, look(identity, paths, token))


def is_watched(record: ProcessRecord) -> bool:
    """Say whether the process that watches a run, by its process record, may still do so."""
    observer = record.observer
    if observer is None:  # written by a version that noted its pid only
        if record.observer_pid is None:
            return False
        try:
            return start_ticks(record.observer_pid) is not None and not is_zombie(record.observer_pid)
        except PermissionError:
            return True
    return judge_liveness(observer, _look(observer, lock=None, token=record.token)) is not Liveness.DEAD


def is_alive(identity: Identity) -> bool | None:
    """Say whether the very process that a record names lives, by what can be seen of it; None if that is not plain."""
    liveness = judge_liveness(identity, _look(identity, lock=None, token=identity.token))
    return None if liveness is Liveness.UNKNOWN else liveness is Liveness.ALIVE


def is_here(identity: Identity) -> bool:
    """Say whether pids of the place and time of `identity` mean here and now what they meant then."""
    return (identity.host, identity.boot_id, identity.pid_namespace) == (host_id(), boot_id(), pid_namespace())


def is_earlier_boot(identity: Identity) -> bool:
    """Say whether a process ended because this machine went down, with everything that it started."""
    same_host = identity.host is not None and identity.host == host_id()
    return same_host and None not in (identity.boot_id, boot_id()) and identity.boot_id != boot_id()
