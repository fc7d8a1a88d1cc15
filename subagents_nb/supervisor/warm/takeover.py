"""See that somebody keeps the line: a reader, a launcher or a runner that ends finds that nobody does.

`python -m subagents_nb.supervisor.warm.takeover HOME [now]` brings a supervisor up if runs wait and none is there; it
takes over whatever nobody keeps. What a launcher knew beyond that, the variables of its runs, it brings again, for as
long as it lives; what others have that a run lacks, they bring.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from subagents_nb.domain.agents.environment import RUN_MARK, runner_environ
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.errors import LaunchError, Unreadable
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.waiting import line
from subagents_nb.supervisor.processes.orphans import mark_of
from subagents_nb.supervisor.protocol.reaching import ask, await_starters, connect_queue_now, ensure_queue_owner
from subagents_nb.supervisor.warm.queue_owner import how_is

_EACH_S = 1.0
_own: dict[str, Mapping[str, str]] = {}  # the variables of the runs that this process put into the line
_looked: dict[str, float] = {}


def keep_environ(home: StoreHome, run_id: str, environ: Mapping[str, str]) -> None:
    """Keep the variables of a run that we put into the line, in memory and for as long as it waits."""
    waiting = {turn.run_id for turn in line.standing(home)} if _own else set()
    for gone in _own.keys() - waiting:
        _own.pop(gone, None)
        _looked.pop(gone, None)
    _own[run_id] = environ


def look_after(home: StoreHome, status: RunStatus) -> bool:
    """See that a waiting run is kept and has what it needs; False if it stands in no line, so nobody will begin it.

    Returns at once: a supervisor that is missing comes up meanwhile, and is spoken to at a later look.
    """
    run_id, keeper = status.run_id, status.queue_keeper
    turn = line.find(home, run_id)
    if turn is None or keeper is None:
        return False
    now = time.monotonic()
    if now - _looked.get(run_id, float("-inf")) < _EACH_S:
        return True
    _looked[run_id] = now
    unkept = how_is(keeper) in ("gone", "still")
    environ = _own.get(run_id)
    if environ is None and status.lacks and all(name in os.environ for name in status.lacks):
        environ = runner_environ(os.environ)
    with contextlib.suppress(LaunchError, OSError, Unreadable):
        if environ is not None and (unkept or status.lacks):
            bring(home, turn, environ)
        elif unkept:
            ensure_queue_owner(home)
    return True


def bring(home: StoreHome, turn: line.Turn, environ: Mapping[str, str]) -> None:
    """Hand a waiting run to the supervisor that is up, with its variables; if none is, have one come up."""
    lines = connect_queue_now(home)
    needs = line.needs_of(turn)
    if lines is None or needs is None:
        return
    with contextlib.closing(lines):
        plan = read_document(home.run(turn.run_id).plan, LaunchPlan, turn.run_id)
        child = {**environ, RUN_MARK: mark_of(turn.run_id, plan.token)}
        request = {"op": "queue", "run_id": turn.run_id, "token": plan.token, "cwd": plan.cwd, "environ": child}
        ask(lines, {**request, "limit": needs.limit})


def main(home: StoreHome, *, now: bool = False) -> None:
    """Bring a supervisor up if runs wait, or if one is needed `now`; return when it holds its lock."""
    if now or line.standing(home):
        ensure_queue_owner(home)
        await_starters()


if __name__ == "__main__":
    main(StoreHome(Path(sys.argv[1])), now=len(sys.argv) > 2)
