"""Launch a run through the public seams and die at a named point on the way. Prints the run's id first.

launcher.py POINT     one of: stored, started, status, proceed, launched
"""

from __future__ import annotations

import os
import sys
import time

from subagents_nb.catalog import discover, load_settings, resolve
from subagents_nb.domain.environment import runner_environ
from subagents_nb.domain.ids import make_run_id
from subagents_nb.domain.plan import LaunchRequest
from subagents_nb.domain.records import RecoveryRecord
from subagents_nb.launching.begin import first_status
from subagents_nb.launching.facts import gather_facts
from subagents_nb.planning import draft
from subagents_nb.store import create_run, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.supervisor.identity import identify
from subagents_nb.supervisor.start import start_runner


def main(point: str, model: str) -> None:
    from pathlib import Path

    home, cwd = open_home(), Path.cwd()
    request = LaunchRequest(agent="scout", task="say something", model=model)
    facts = gather_facts(None, environ=os.environ, model=model)
    settings = load_settings(cwd, environ=os.environ, reserved=frozenset())
    planned = draft(request, catalog=discover(cwd, registered=()), settings=settings, facts=facts)
    resolve("scout", discover(cwd, registered=()))
    run_id = make_run_id(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(6)))
    plan = planned.to_plan(run_id=run_id, token=os.urandom(16).hex(), created_at=utc_now())
    print(run_id, flush=True)

    def reached(name: str) -> None:
        if name == point:
            os._exit(0)

    writer = create_run(home, plan, RecoveryRecord(run_id=run_id, digest=plan.digest))
    reached("stored")
    started = start_runner(home, run_id=run_id, token=plan.token, cwd=plan.cwd, environ=runner_environ(os.environ))
    who = identify(started.pid, plan.token)
    reached("started")
    writer.status(first_status(plan, runner=who), milestone=True)
    reached("status")
    if point == "abandon":
        started.abandon()
        return
    started.proceed(plan.token)
    reached("proceed")


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "scripted:echo")
