"""What the process of a run and all below it take of this machine, seen from outside."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import psutil

from subagents_nb.domain.runs.records import Identity
from subagents_nb.supervisor.processes.liveness import is_alive


class ProcessLoad(NamedTuple):
    """A process with all that it started and that still lives."""

    cpu_s: float  # of processor time that they have had
    memory: int  # bytes that they hold; what they share is counted for each
    processes: int


def load_of(identity: Identity) -> ProcessLoad | None:
    """Return the load of the very process that a record names; None if it is gone, elsewhere, or can't be told."""
    if not is_alive(identity):
        return None
    seen = []
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(identity.pid)
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                seen.append((times.user + times.system, process.memory_info().rss))
    return ProcessLoad(sum(cpu for cpu, _ in seen), sum(rss for _, rss in seen), len(seen)) if seen else None
