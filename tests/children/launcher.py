"""Launch a run through the public seams and die at a named point on the way. Prints the run's id first.

launcher.py POINT [MODEL]         end at one of: placed, stored, asked, started, status, proceed; or abandon the run
launcher.py POINT MODEL TIMES     do so TIMES times, killed at the point each time; `random`: killed at any moment
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from subagents_nb.catalog import discover, load_settings, resolve
from subagents_nb.domain.agents.environment import RUN_MARK, runner_environ
from subagents_nb.domain.plans.plan import LaunchPlan, LaunchRequest
from subagents_nb.domain.runs.records import RecoveryRecord
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.planning import draft
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.store.waiting.capacity import take_slot
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.processes.orphans import mark_of
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.protocol.reaching import connect
from subagents_nb.supervisor.start import start_runner


def planned(model: str) -> LaunchPlan:
    cwd = Path.cwd()
    request = LaunchRequest(agent="scout", task="say something", model=model)
    facts = look_up_environment(None, environ=os.environ, models=(model,))
    settings = load_settings(cwd, environ=os.environ, reserved=frozenset())
    made = draft(request, catalog=discover(cwd, registered=()), settings=settings, environment=facts)
    resolve("scout", discover(cwd, registered=()))
    run_id = make_run_id(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(6)))
    return made.to_plan(run_id=run_id, token=os.urandom(16).hex(), created_at=utc_now())


def launch(home: StoreHome, plan: LaunchPlan, reached: Any, *, abandon: bool) -> None:
    place = take_slot(home, 16)
    reached("placed")
    writer = create_run(home, plan, RecoveryRecord(run_id=plan.run_id, digest=plan.digest))
    reached("stored")
    environ = runner_environ(os.environ)
    reached("asked", lambda: ask_and_leave(home, plan, environ, place))
    started = start_runner(home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=environ, place=place)
    who = identify(started.pid, plan.token)
    reached("started")
    writer.status(first_status(plan, runner=who), milestone=True)
    reached("status")
    if abandon:
        started.abandon()
        return
    started.proceed(plan.token)
    reached("proceed")


def ask_and_leave(home: StoreHome, plan: LaunchPlan, environ: dict[str, str], place: int | None) -> None:
    """Ask a warm supervisor for the runner, and don't wait for its word."""
    lines = connect(home)
    assert lines is not None, "only a warm supervisor is asked"
    child = {**environ, RUN_MARK: mark_of(plan.run_id, plan.token)}
    request = {"op": "launch", "run_id": plan.run_id, "token": plan.token, "cwd": plan.cwd, "environ": child}
    lines.say(wire.encode(request), place=place)


def one(home: StoreHome, point: str, model: str, die: Any) -> None:
    plan = planned(model)
    print(plan.run_id, flush=True)

    def reached(name: str, first: Any = None) -> None:
        if name == point:
            if first is not None:
                first()
            die()

    launch(home, plan, reached, abandon=point == "abandon")


def main(point: str, model: str = "scripted:echo", times: str = "") -> None:
    home = open_home()
    if not times:
        one(home, point, model, lambda: os._exit(0))
        return
    rng = random.Random(20260302)
    for _ in range(int(times)):
        pid = os.fork()
        if pid == 0:
            one(home, point, model, lambda: os.kill(os.getpid(), signal.SIGKILL))
            os._exit(0)
        if point == "random":
            time.sleep(rng.uniform(0.0, 0.06))
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


main(*sys.argv[1:])
