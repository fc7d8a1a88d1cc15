"""Who keeps the turn of a waiting run: the supervisor that its status names, until that has ended or stands still."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Literal, NamedTuple

from subagents_nb.domain.agents.environment import RUN_MARK, runner_environ
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.records import Identity, RunStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.process_list import look
from subagents_nb.store.runs.reader import FileRuns, read_document
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.store.waiting import line
from subagents_nb.supervisor.ends.termination import watcher
from subagents_nb.supervisor.processes.liveness import is_alive, is_earlier_boot
from subagents_nb.supervisor.processes.orphans import mark_of
from subagents_nb.supervisor.warm.process_table import SpawnRequest

LOOK_S = 1.0
FROZEN_S = 3.0  # so long a keeper stands still before it is passed by


class Taken(NamedTuple):
    """A run that was taken over, and what it lacks of our variables."""

    request: SpawnRequest
    limit: int
    lacks: tuple[str, ...]


class Keeping:
    """The keeper's side: takes over runs that nobody keeps. Another that wakes up finds that they are not its own."""

    def __init__(
        self,
        home: StoreHome,
        environ: Mapping[str, str] = os.environ,
        *,
        look_s: float = LOOK_S,
        frozen_s: float = FROZEN_S,
    ) -> None:
        self._home = home
        self._environ = environ
        self._files = FileRuns(home)
        self._look_s, self._frozen_s = look_s, frozen_s
        self._looked = float("-inf")
        self._still: dict[int, float] = {}  # since when a keeper stands still

    def own(self, run_id: str, token: str) -> None:
        """Write down that we keep this run's turn from now on: its launcher brought it to us."""
        with line.claimed(self._home, run_id) as ours:
            status = self._status(run_id)
            if ours and status is not None and not _is_us(status.queue_keeper):
                self._write(status, queue_keeper=watcher(token))

    def keeps(self, run_id: str) -> bool:
        """Say whether a run waits and its turn is still ours: while we stood still another may have taken it."""
        try:
            status = read_document(self._home.run(run_id).status, RunStatus, run_id)
        except Unreadable:
            return True  # which says nothing: whoever begins it looks again
        return status.state is RunState.QUEUED and status.runner is None and _is_us(status.queue_keeper)

    def say_lacks(self, run_id: str, lacks: tuple[str, ...], *, limit: int) -> None:
        """Write down what a run lacks that we keep, and whether launchers may pass it."""
        turn = line.find(self._home, run_id)
        status = self._status(run_id)
        if turn is not None and status is not None:
            self._write(status, lacks=lacks)
            line.hold_up_nobody(self._home, turn, limit=0 if lacks else limit)

    def take_over(self, known: Collection[str]) -> Iterator[Taken]:
        """Become the keeper of those in the line that nobody keeps, and of ours that were not brought to us."""
        if time.monotonic() - self._looked < self._look_s:
            return
        self._looked = time.monotonic()
        for turn in line.standing(self._home):
            if turn.run_id in known:
                continue
            try:
                taken = self._consider(turn)
            except (OSError, Unreadable):
                continue  # not just now
            if taken is not None:
                yield taken

    def _consider(self, turn: line.Turn) -> Taken | None:
        paths = self._home.run(turn.run_id)
        if not paths.root.is_dir() or self._files.has_terminal_record(turn.run_id):
            line.leave(self._home, turn.run_id)
            return None
        if probe(paths.launching) == "held":
            return None  # its launcher is about to bring it to somebody
        status = read_document(paths.status, RunStatus, turn.run_id)
        if status.state is not RunState.QUEUED or status.runner is not None:
            line.leave(self._home, turn.run_id)
            return None
        needs = line.needs_of(turn)
        if needs is None or not _is_for_us(needs) or not self._is_free(status.queue_keeper):
            return None
        with line.claimed(self._home, turn.run_id) as ours:
            now = self._status(turn.run_id)
            if not ours or now is None or now.queue_keeper != status.queue_keeper:
                return None
            plan = read_document(paths.plan, LaunchPlan, turn.run_id)
            variables = {**runner_environ(self._environ), RUN_MARK: mark_of(turn.run_id, plan.token)}
            lacks = tuple(name for name in needs.variables if name not in variables)
            self._write(now, queue_keeper=watcher(plan.token), lacks=lacks)
        line.hold_up_nobody(self._home, turn, limit=0 if lacks else needs.limit)
        return Taken(SpawnRequest(turn.run_id, plan.token, plan.cwd, variables), needs.limit, lacks)

    def _is_free(self, keeper: Identity | None) -> bool:
        """Say whether a run with this keeper is ours to keep. After the machine went down nobody begins by itself."""
        if keeper is None or is_earlier_boot(keeper):
            return False
        if _is_us(keeper):
            return True
        how = how_is(keeper)
        if how != "still":
            self._still.pop(keeper.pid, None)
            return how == "gone"
        return time.monotonic() - self._still.setdefault(keeper.pid, time.monotonic()) > self._frozen_s

    def _status(self, run_id: str) -> RunStatus | None:
        """Return the status of a run that waits; None if it does not, or can't be read."""
        try:
            status = read_document(self._home.run(run_id).status, RunStatus, run_id)
        except Unreadable:
            return None
        return status if status.state is RunState.QUEUED and status.runner is None else None

    def _write(self, status: RunStatus, **changed: object) -> None:
        news = status.model_copy(update={**changed, "updated_at": utc_now(), "seq": status.seq + 1})
        RunWriter(self._home.run(status.run_id)).status(news, milestone=True)


def how_is(keeper: Identity) -> Literal["up", "still", "gone", "unknown"]:
    """Say how the process is that keeps a run's turn. `still`: it was stopped by a signal and does nothing."""
    alive = is_alive(keeper)
    if alive is None:
        return "unknown"
    if not alive:
        return "gone"
    process = look(keeper.pid)
    return "still" if process is not None and process.state == "T" else "up"


def _is_us(keeper: Identity | None) -> bool:
    own = watcher("")
    return keeper is not None and (keeper.pid, keeper.start_ticks, keeper.boot_id) == (
        own.pid,
        own.start_ticks,
        own.boot_id,
    )


def _is_for_us(needs: line.Needs) -> bool:
    """Say whether we begin runs in the interpreter that a run was launched under, or that is there no more."""
    return needs.python == sys.executable or not os.path.exists(needs.python)
