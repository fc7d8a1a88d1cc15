"""Who may outlive a run although the run's tools started it: what is proved to be none of the run's.

A mark in a process's own environment proves nothing, for any command may set it. What counts is what its owner wrote
down about itself, with the moment at which it began: a supervisor in its lock, the server of the local model in its
record, who carries out or watches another run in that run's record, a runner of the commands by which it told of it.
"""

from __future__ import annotations

import contextlib
import json

from subagents_nb.domain.agents.environment import NO_RUN
from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.processes.childlog import is_notice, read_children
from subagents_nb.store.processes.process_list import Process, look, mark_in
from subagents_nb.store.runs.reader import FileRuns, read_document

_NEWEST = 64


def outlives(home: StoreHome, run_id: str, process: Process) -> bool:
    """Say whether a process that descends from a run, or carries its mark, is proved to be another's.

    Raises:
        OSError: out of descriptors or memory.
    """
    mark = mark_in(process.pid)
    other, _, token = (mark or "").partition(":")
    if is_run_id(other):
        return other != run_id and _is_of(home, other, process)
    if other == NO_RUN and is_run_id(token):
        return _is_notice_of(home, token, process)
    if mark not in (None, NO_RUN):
        return False
    if _is_supervisor(home, process) or _is_model_server(home, process):
        return True
    # The environment of one that keeps its memory private can't be read: it may be the runner of another run.
    return mark is None and any(
        _is_of(home, one, process) for one in list(FileRuns(home).ids())[:_NEWEST] if one != run_id
    )


def _is_notice_of(home: StoreHome, run_id: str, process: Process) -> bool:
    try:
        return is_notice(read_children(home.run(run_id).children) or (), process)
    except Unreadable as error:
        if error.kind == "busy":
            raise OSError(str(error)) from error
        return False


def _is_supervisor(home: StoreHome, process: Process) -> bool:
    for path in home.supervisor.glob("*.lock"):
        with contextlib.suppress(Unreadable, ValueError):
            pid, ticks = map(int, DISK.read(path).split())
            if (pid, ticks) == (process.pid, process.ticks):
                return probe(path) == "held"
    return False


def _is_model_server(home: StoreHome, process: Process) -> bool:
    with contextlib.suppress(Unreadable, ValueError, AttributeError):
        record = json.loads(DISK.read(home.root / "local-model" / "server.json"))
        return (record.get("pid"), record.get("start_ticks")) == (process.pid, process.ticks)
    return False


def _is_of(home: StoreHome, run_id: str, process: Process) -> bool:
    """Say whether a process carries out or watches this run, by its records, of which the launcher's comes first."""
    paths, who = home.run(run_id), (process.pid, process.ticks)
    with contextlib.suppress(Unreadable):
        record = read_document(paths.process, ProcessRecord, run_id)
        watcher = record.observer
        if who == (record.pid, record.start_ticks):
            return True
        if watcher is not None and who == (watcher.pid, watcher.start_ticks):
            return True
    with contextlib.suppress(Unreadable):
        runner = read_document(paths.status, RunStatus, run_id).runner
        if runner is not None and (found := look(runner.pid)) is not None and found.ticks == runner.start_ticks:
            return process.pid in (runner.pid, found.parent)
    return False
