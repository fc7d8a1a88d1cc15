"""Processes that a run started and left behind, found by every trace that it leaves, and ended.

By its process group; by its mark in the environment; by what the runner wrote down when it started them, with their
groups and sessions; by whoever fell to us when the runner ended; and by descent from all of these. What a process says
of itself, that it is of another run or of none, counts for nothing against that: only proof does, see `outliving`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from subagents_nb.domain.runs.exit_report import ChildEnd
from subagents_nb.store.processes.childlog import is_notice
from subagents_nb.store.processes.process_list import Process, can_look, end, end_orphans, everyone, mark_in

Fallen = Callable[[], Iterable[int]]
Spare = Callable[[Process], bool]
_TRACED_ROUNDS = 3  # a process of the run may have been forking while we looked
_MOST_ROUNDS = 40  # and what other runs that die at this moment leave behind goes on falling to us
_CLEAN = 2  # looks that find nobody, and between which nobody fell to us: one alone may miss who is forking
_HUNT_S = 2.0


@dataclass(frozen=True, slots=True)
class Orphans:
    """Whom we ended, and whether nobody of the run is left; None where that can't be seen.

    `accounted` is False for a run that may have started processes of which nobody knows.
    """

    ended: tuple[int, ...] = ()
    empty: bool | None = None
    accounted: bool = True


def mark_of(run_id: str, token: str) -> str:
    """Return the value of the variable that every process of a run inherits."""
    return f"{run_id}:{token}"


def end_run_processes(
    group: int | None,
    mark: str,
    *,
    since: int | None = None,
    recorded: Iterable[ChildEnd] = (),
    fallen: Fallen = tuple,
    spare: Spare = lambda _: False,
) -> Orphans:
    """End every process of a run whose runner, the leader of `group`, has ended but is not yet reaped.

    While the leader is unreaped its pid, and so the group's number, can't belong to anybody else. Without a group, as
    for a leader that was not ours to reap, a number counts only while the process that it was written down for has it.
    Who carries the mark but began before `since`, in start ticks, is passed over. `fallen` returns the children of this
    process that are of no other run; `spare` says who is proved to be another's. Nobody is signalled but as what is
    proved to be meant.

    Raises:
        OSError: out of descriptors or memory; what was found so far is ended.
    """
    if not can_look():
        return Orphans()
    known = tuple(recorded)
    rows = tuple(row for row in known if row.what != "notice" and row.pid > 1)

    def spared(process: Process) -> bool:
        return is_notice(known, process) or spare(process)

    search = _Search(group, mark, since, rows, fallen, spared)
    ended: set[int] = set()
    traced_rounds = clean = 0
    before: set[int] | None = None
    for _ in range(_MOST_ROUNDS):
        now = set(fallen())
        stirs, before = before is not None and bool(now - before), now
        if stirs:
            ended |= end_orphans(fallen, lambda process: process.pid == group or spared(process), within_s=_HUNT_S)
        processes, traced, doubtful = search.find()
        if not processes:
            clean = 0 if stirs else clean + 1
            if clean == _CLEAN:
                return Orphans(tuple(sorted(ended)), empty=not doubtful)
            continue
        clean = 0
        ended.update(process.pid for process in processes if end(process))
        traced_rounds += traced
        if traced_rounds == _TRACED_ROUNDS:
            break
    processes, _, doubtful = search.find()
    return Orphans(tuple(sorted(ended)), empty=not (processes or doubtful or clean == 0))


@dataclass(frozen=True, slots=True)
class _Search:
    group: int | None
    mark: str
    since: int | None
    recorded: tuple[ChildEnd, ...]
    fallen: Fallen
    spared: Spare

    def find(self) -> tuple[list[Process], bool, bool]:
        """Return the living processes of the run, or of no run that lives.

        And whether a trace of the run led to one of them, and whether there are others to which one leads that proves
        nothing.
        """
        table = everyone()
        own = os.getpid()
        living = {p.pid: p for p in table.values() if not p.ended and p.pid > 1 and p.pid not in (own, self.group)}
        fallen = {pid for pid in self.fallen() if pid in living and self._is_ours(living[pid])}
        proved = {p.pid for p in living.values() if self.group and p.group == self.group}
        doubtful = False
        for row in self.recorded:
            led = [p for p in living.values() if row.pid in (p.pid, p.session, p.group)]
            leader = table.get(row.pid)
            if leader is not None and leader.ticks != row.start_ticks:
                continue  # its number was given out again, so nobody of its own is left
            if leader is None and self.group is None:
                doubtful = doubtful or bool(led)
            else:
                proved.update(p.pid for p in led if row.start_ticks is not None and p.ticks >= row.start_ticks)
        proved = {pid for pid in proved if self._is_ours(living[pid])}
        proved.update(p.pid for p in living.values() if p.pid not in proved and self._is_marked(p))
        pids = self._with_descendants(proved | fallen, living)
        return [living[pid] for pid in pids], bool(proved), doubtful

    def _is_ours(self, process: Process) -> bool:
        return mark_in(process.pid) == self.mark or not self.spared(process)

    def _is_marked(self, process: Process) -> bool:
        """Whoever began before the run did can't belong to it; to read its environment would be the costly part."""
        return (self.since is None or process.ticks >= self.since) and mark_in(process.pid) == self.mark

    def _with_descendants(self, pids: set[int], living: dict[int, Process]) -> list[int]:
        below: dict[int, list[int]] = {}
        for process in living.values():
            below.setdefault(process.parent, []).append(process.pid)
        family, ahead = set(pids), list(pids)
        while ahead:
            for pid in below.get(ahead.pop(), ()):
                if pid not in family and self._is_ours(living[pid]):
                    family.add(pid)
                    ahead.append(pid)
        return sorted(family)
