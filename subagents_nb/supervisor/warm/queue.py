"""Runs that wait for a free place, started in order, with no kernel alive. Their environment is in memory only.

A run leaves the queue when it begins, when it is known to be over, or when its directory is gone. What could not be
looked at or started just now, for want of descriptors, processes, memory or room on the disk, keeps its turn.

The line itself is on disk. Runs whose keeper has ended, or stands still, are taken over, each by one: with our own
variables, until somebody brings better ones. One that lacks a key keeps its turn, says so, and holds up nobody.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.states import RequestState, RunEvent, RunState
from subagents_nb.errors import Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.reader import FileRuns, read_document
from subagents_nb.store.runs.requests import Mailbox
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import take_slot
from subagents_nb.supervisor.ends.termination import tell
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.warm.meanwhile import take_requests, too_late
from subagents_nb.supervisor.warm.process_table import ProcessTable, SpawnRequest
from subagents_nb.supervisor.warm.queue_owner import Keeping

# The system lacks something now and may have it later; nothing is wrong with the run.
_SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT})
_DESCRIPTORS = 32


@dataclass(eq=False, slots=True)
class QueuedRun:
    """One run in the queue, and the limit that its launcher goes by."""

    request: SpawnRequest
    limit: int
    lacks: tuple[str, ...] = ()
    heard: set[str] = field(default_factory=set)
    unsaid: list[ControlAnswer] = field(default_factory=list)
    promised: list[ControlAnswer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _UnwrittenVerdict:
    paths: RunPaths
    verdict: Verdict
    answers: Sequence[ControlAnswer]


class Queue:
    """First come, first served, among the runs of this supervisor; who may not begin yet keeps up none that may."""

    def __init__(self, home: StoreHome, table: ProcessTable) -> None:
        self._home = home
        self._process_table = table
        self._files = FileRuns(home)
        self._keeping = Keeping(home)
        self._runs: list[QueuedRun] = []
        self._unwritten: list[_UnwrittenVerdict] = []

    def __len__(self) -> int:
        """Return for how many runs there is something to do; nothing can be done for one that lacks a variable."""
        return sum(not waiting.lacks for waiting in self._runs) + len(self._unwritten)

    def add(self, waiting: QueuedRun) -> None:
        """Take in a run of the line, with variables that its launcher, or another who has them, brings."""
        run_id = waiting.request.run_id
        self._keeping.own(run_id, waiting.request.token)
        known = next((one for one in self._runs if one.request.run_id == run_id), None)
        if known is None:
            self._runs.append(waiting)
            self._runs.sort(key=lambda one: one.request.run_id)
            return
        known.request = waiting.request
        if known.lacks:
            known.lacks = ()
            self._keeping.say_lacks(run_id, (), limit=known.limit)

    def step(self) -> None:
        """Do what `look` does, and start as many as there are places."""
        self.look()
        self._start_those_that_may()

    def start_waiting(self) -> None:
        """Start as many as there are places, without a look at what else is to be done."""
        self._start_those_that_may()

    def look(self) -> None:
        """Take over whom nobody keeps, answer what was asked of those that wait, and drop what is over."""
        for taken in self._keeping.take_over({waiting.request.run_id for waiting in self._runs}):
            self._runs.append(QueuedRun(taken.request, taken.limit, taken.lacks))
            self._runs.sort(key=lambda one: one.request.run_id)
        self._unwritten = [word for word in self._unwritten if not _write(word)]
        over = [waiting for waiting in self._runs if self._is_over(waiting)]
        self._runs = [waiting for waiting in self._runs if waiting not in over]
        for waiting in over:
            line.leave(self._home, waiting.request.run_id)

    def _is_over(self, waiting: QueuedRun) -> bool:
        run_id = waiting.request.run_id
        paths = self._home.run(run_id)
        if self._files.has_terminal_record(run_id):
            return self._files.snapshot(run_id).state not in (None, RunState.QUEUED)
        if _is_gone(paths):
            return True
        withdrawn, answers = take_requests(paths, waiting.heard)
        if withdrawn is None:
            waiting.promised += [answer for answer in answers if answer.outcome is RequestState.QUEUED]
            waiting.unsaid = [answer for answer in (*waiting.unsaid, *answers) if not _say(paths, answer)]
            return False
        answers = [too_late(answer) for answer in (*waiting.unsaid, *waiting.promised)] + answers
        self._end(_verdict(run_id, RunEvent.STOP, withdrawn.reason, withdrawn.actor, withdrawn.message), answers)
        return True

    def _start_those_that_may(self) -> None:
        full = 0  # nobody with this limit or a lower one can begin now
        for waiting in list(self._runs):
            if waiting.limit <= full or waiting.lacks:
                continue
            try:
                place = take_slot(self._home, waiting.limit, waited=True)
            except OSError:
                return
            if place is None:
                full = waiting.limit
                continue
            try:
                with line.claimed(self._home, waiting.request.run_id) as ours:
                    if ours is False:
                        continue  # somebody takes it over just now
                    if ours and self._keeping.keeps(waiting.request.run_id):
                        if not self._start(waiting, place):
                            return
                        line.leave(self._home, waiting.request.run_id)
                    self._runs.remove(waiting)
            except OSError:
                return
            finally:
                os.close(place)

    def _start(self, waiting: QueuedRun, place: int) -> bool:
        """Start a run; say whether its turn is over. If not, the system could not do it now and nothing was started."""
        request, before = waiting.request, len(self._process_table)
        paths = self._home.run(request.run_id)
        try:
            queued = read_document(paths.status, RunStatus, request.run_id)
            if queued.state is not RunState.QUEUED or queued.runner is not None:
                return True
            _check_descriptors()
            ours, theirs = socket.socketpair()
            with ours, theirs:
                # Where this can't be written, what follows the fork could not be either: nothing is started then.
                queued = queued.model_copy(update={"updated_at": utc_now(), "seq": queued.seq + 1})
                RunWriter(paths).status(queued, milestone=False)
                pid = self._process_table.start(request, channel=theirs.fileno(), place=place)
                self._own(queued, request, pid)
                ours.sendall(f"{wire.PROCEED} {request.token}\n".encode())
        except (OSError, RuntimeError, Unreadable) as error:
            if len(self._process_table) == before and _is_passing(error):
                return False
            # The runner, if there is one, sees its channel close and ends without having begun.
            message = f"It could not be started when its turn came: {error}."
            verdict = _verdict(request.run_id, RunEvent.FAIL, "startup", "self", message)
            self._end(verdict, [too_late(answer) for answer in waiting.promised])
        return True

    def _own(self, queued: RunStatus, request: SpawnRequest, pid: int) -> None:
        """Write down who carries the run out, as its launcher would have."""
        identity = identify(pid, request.token)
        changed = {
            "runner": identity,
            "queue_keeper": None,
            "lacks": (),
            "updated_at": utc_now(),
            "seq": queued.seq + 1,
        }
        RunWriter(self._home.run(request.run_id)).status(queued.model_copy(update=changed), milestone=True)

    def _end(self, verdict: Verdict, answers: Sequence[ControlAnswer]) -> None:
        word = _UnwrittenVerdict(self._home.run(verdict.run_id), verdict, answers)
        if not _write(word):
            self._unwritten.append(word)


def _write(word: _UnwrittenVerdict) -> bool:
    """Write a run's last word, then the answers; say whether there is no more to do."""
    if _is_gone(word.paths):
        return True
    try:
        first = RunWriter(word.paths).verdict(word.verdict)
    except OSError:
        return False
    if first and word.verdict.state is RunState.FAILED:  # a withdrawal is the person's own
        tell(word.paths, word.verdict)
    for answer in word.answers:
        _say(word.paths, answer)
    return True


def _say(paths: RunPaths, answer: ControlAnswer) -> bool:
    try:
        Mailbox(paths).answer(answer)
    except OSError:
        return False
    return True


def _is_gone(paths: RunPaths) -> bool:
    """Say whether it was seen that the run's directory is not there, which takes no descriptor."""
    try:
        return not stat.S_ISDIR(os.lstat(paths.root).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _check_descriptors() -> None:
    """Make sure that a runner, which begins with our limit, would have the descriptors that it needs.

    Raises:
        OSError: so many are not free now.
    """
    spare: list[int] = []
    try:
        while len(spare) < _DESCRIPTORS:
            spare.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for handle in spare:
            os.close(handle)


def _is_passing(error: Exception) -> bool:
    if isinstance(error, Unreadable):
        return error.kind == "busy"
    return isinstance(error, OSError) and error.errno in _SHORT_OF


def _verdict(run_id: str, event: RunEvent, reason: str, actor: str, message: str) -> Verdict:
    fields = {"run_id": run_id, "reason": reason, "actor": actor, "message": message}
    return Verdict.over(RunState.QUEUED, event, **fields, judged_at=utc_now(), judged_by="supervisor")
