"""The runners of one supervisor: made by fork where that is safe, else in fresh interpreters; reaped and recorded."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.signals import KILL, has_ended, signal_child
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.notice import without_notices
from subagents_nb.store.processes.process_list import mark_in, own_children, reap
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.writer import RunWriter
from subagents_nb.supervisor.ends.children_left import WAIT_S, stop_children
from subagents_nb.supervisor.ends.kill_escalation import KillEscalation
from subagents_nb.supervisor.ends.termination import clear_up, judge_at_once, record_end, record_pending
from subagents_nb.supervisor.processes.backoff import Backoff
from subagents_nb.supervisor.processes.fresh import secrets_for
from subagents_nb.supervisor.processes.identity import ticks_if_seen
from subagents_nb.supervisor.processes.orphans import Orphans, mark_of
from subagents_nb.supervisor.warm.forked_child import become_runner


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """What is needed to start one runner. The environment is kept in memory only."""

    run_id: str
    token: str
    cwd: str
    environ: Mapping[str, str]

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> SpawnRequest:
        """Return what a launcher's message asks for.

        Raises:
            KeyError, TypeError, ValueError: something is missing, or of another kind.
        """
        environ = {str(name): str(value) for name, value in dict(message["environ"]).items()}
        run_id = str(message["run_id"])
        if not is_run_id(run_id):
            raise ValueError(f"{run_id!r} is no run id")
        return cls(run_id, str(message["token"]), str(message["cwd"]), environ)


@dataclass(slots=True)
class _Child:
    run_id: str
    started: ProcessRecord
    backoff: Backoff = field(default_factory=Backoff)
    left: Orphans | None = None  # once it has ended and what it left is ended too
    seen_ended: float | None = None  # when, by the monotonic clock


class ProcessTable:
    """Starts runners and sees them end. Lives in a process with one thread, to which their orphans fall."""

    def __init__(self, home: StoreHome, *, forking: bool) -> None:
        self._home = home
        self._forking = forking
        self._children: dict[int, _Child] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._escalation = KillEscalation()

    def __len__(self) -> int:
        return len(self._children)

    def fork_no_more(self) -> None:
        """Start all further runners in fresh interpreters: this process is not what runners should be copies of."""
        self._forking = False

    def start(self, request: SpawnRequest, *, channel: int, place: int | None) -> int:
        """Start a runner that waits at its barrier and write down that we watch it. The descriptors stay the caller's.

        Raises:
            OSError: no process could be started.
            RuntimeError: this process has several threads, so forking is unsafe.
        """
        pid = self._fork(request, channel, place) if self._forking else self._spawn(request, channel, place)
        writer = RunWriter(self._home.run(request.run_id))
        ticks = ticks_if_seen(pid)
        spawn: Literal["warm", "cold"] = "warm" if self._forking else "cold"
        started = ProcessRecord(run_id=request.run_id, state="pending", spawn=spawn, token=request.token, pid=pid)
        self._children[pid] = child = _Child(request.run_id, started)  # it is to be reaped, whatever the disk says next
        child.started = record_pending(writer, spawn=spawn, token=request.token, pid=pid, ticks=ticks)
        return pid

    def force(self) -> None:
        """End the runners that do not hear that they shall stop. They are unreaped: their pids are still theirs."""
        pids = {child.run_id: pid for pid, child in self._children.items()}
        for run_id in self._escalation.due({run_id: self._home.run(run_id) for run_id in pids}):
            signal_child(pids[run_id], KILL)

    def reap(self) -> int:
        """Record the ends of all runners that have ended; return how many. A fault with one harms no other.

        A runner is reaped only when its end is on disk: till then waitid(2) keeps how it ended, and its pid.
        """
        recorded = 0
        for pid, child in list(self._children.items()):
            if not child.backoff.due:
                continue
            end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is None or self._awaits_children(child):
                continue
            wrong = child.backoff.tried(functools.partial(self._record, pid, child, end))
            if wrong:
                print(f"run {child.run_id}: its end was not recorded: {wrong}", file=sys.stderr, flush=True)  # noqa: T201
            if wrong is None:
                self._forget(pid)
                recorded += 1
        with contextlib.suppress(OSError):
            for pid in self._orphans():
                reap(pid)
        return recorded

    def _awaits_children(self, child: _Child) -> bool:
        """Stop the children of a run that has ended; say whether its own end is to wait for theirs."""
        now = time.monotonic()
        child.seen_ended = now if child.seen_ended is None else child.seen_ended
        with contextlib.suppress(OSError):
            return bool(stop_children(self._home, child.run_id)) and now - child.seen_ended < WAIT_S
        return False

    def _record(self, pid: int, child: _Child, end: os.waitid_result) -> None:
        exited = end.si_code == os.CLD_EXITED
        code, number = (end.si_status, None) if exited else (None, end.si_status)
        run_id, started = child.run_id, child.started
        if self._is_anothers(run_id, pid, started.token):
            return  # its launcher, which heard nothing from us, had it begin another way
        if child.left is None:
            judge_at_once(self._home, run_id, exit_code=code, signal=number, judge="supervisor")
            child.left = clear_up(
                self._home, run_id, started, leader=pid, fallen=functools.partial(self._orphans, run_id)
            )
        record_end(
            self._home,
            run_id,
            started=started,
            exit_code=code,
            signal=number,
            orphans=child.left,
            judge="supervisor",
        )

    def _is_anothers(self, run_id: str, pid: int, token: str) -> bool:
        """Say whether a run's process record names another process than ours.

        Raises:
            Unreadable: not just now.
        """
        try:
            record = read_document(self._home.run(run_id).process, ProcessRecord, run_id)
        except Unreadable as error:
            if error.kind == "busy":
                raise
            return False
        return (record.pid, record.token) != (pid, token)

    def _forget(self, pid: int) -> None:
        del self._children[pid]
        process = self._processes.pop(pid, None)
        if process is not None:
            process.wait()
        else:
            os.waitpid(pid, 0)

    def _orphans(self, run_id: str = "") -> set[int]:
        """Return our children whom we did not start: what dead runners left behind falls to us.

        Those are left out that say they are of another run of ours which has ended and is to be cleared up: of a run
        whose runner lives nothing falls to us.
        """
        fallen = without_notices(own_children() - self._children.keys())
        others = {
            mark_of(child.run_id, child.started.token)
            for pid, child in self._children.items()
            if run_id and child.run_id != run_id and has_ended(pid)
        }
        return {pid for pid in fallen if not others or mark_in(pid) not in others}

    def _fork(self, request: SpawnRequest, channel: int, place: int | None) -> int:
        # A child has the locks that other threads hold, and not the threads that let them go: python/cpython#100228.
        threads = _thread_count()
        if threads != 1:
            raise RuntimeError(f"forking with {threads} threads is unsafe")
        pid = os.fork()
        if pid == 0:
            self._in_child(request, channel, place)
        return pid

    def _in_child(self, request: SpawnRequest, channel: int, place: int | None) -> NoReturn:
        code = 70
        try:
            root = self._home.run(request.run_id).root
            inherited = {channel} if place is None else {channel, place}
            become_runner(run_root=root, cwd=request.cwd, environ=request.environ, keep=inherited)
            # The runner is known here by its entry point only.
            code = importlib.import_module("subagents_nb.runner.main").run(
                root, channel=channel, places=() if place is None else (place,)
            )
        except BaseException:  # noqa: BLE001 - a fork must never return into the supervisor's loop
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
                sys.stdout.flush()
            os._exit(code)

    def _spawn(self, request: SpawnRequest, channel: int, place: int | None) -> int:
        root = self._home.run(request.run_id).root
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        output, errors = DISK.open(root / "runner.out", flags), DISK.open(root / "runner.err", flags)
        handed = () if place is None else (place,)
        try:
            with secrets_for(request.environ, request.cwd) as secrets:
                os.stat(f"{request.cwd}{os.sep}.")
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "subagents_nb.runner", str(root)],
                    stdin=channel,
                    stdout=output,
                    stderr=errors,
                    cwd="/",
                    env={**secrets.environ, "SUBAGENTS_NB_PLACE": ",".join(map(str, handed))},
                    start_new_session=True,
                    pass_fds=(*handed, *secrets.handles),
                )
                self._processes[process.pid] = process
                with contextlib.suppress(OSError):  # it ended at once, which is seen as any end is
                    secrets.send()
        finally:
            os.close(output)
            os.close(errors)
        return process.pid


def _thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()
