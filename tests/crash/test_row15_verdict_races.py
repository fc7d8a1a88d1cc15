"""A judge looks without pause while runs finish: a run with a result is never called lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest
from crash.counting import times
from crash.lives import a_plan, exit_code, fork, made, settings
from support import make_result, script, until

from subagents_nb import launch
from subagents_nb.domain.runs.records import RunStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, RunWriter, StoreHome
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.warm.reconcile import reconcile

Case = Callable[..., None]
SEED = 20260315
CHEAP, REAL, AT_ONCE = times(20, 950), times(10, 50), 10


def finish(writer: RunWriter, status: RunStatus, before_s: float, after_s: float) -> int:
    """Be a runner: hold the lock, work for a moment, write the result, and end a moment later."""
    hold(writer.paths.lock)
    who = identify(os.getpid(), "f" * 32)
    writer.status(status.model_copy(update={"state": RunState.RUNNING, "runner": who}), milestone=False)
    time.sleep(before_s)
    writer.result(make_result().model_copy(update={"run_id": status.run_id}))
    writer.status(status.model_copy(update={"state": RunState.COMPLETE, "runner": who}), milestone=False)
    time.sleep(after_s)
    return 0


@pytest.mark.row(15, cases=CHEAP)
@pytest.mark.timeout(180)
def test_a_run_judged_as_it_finishes_is_never_lost(store_home: StoreHome, case: Case) -> None:
    rng = random.Random(SEED)
    print("seed", SEED)
    looks = 0
    for number in range(CHEAP):
        plan = a_plan(number, created_at=utc_now())
        writer = made(store_home, plan)
        writer.status(first_status(plan), milestone=False)
        before_s, after_s = rng.uniform(0, 0.01), rng.choice((0.0, 0.0, rng.uniform(0, 0.01)))
        status = first_status(plan)
        pid = fork(lambda w=writer, s=status, b=before_s, a=after_s: finish(w, s, b, a))
        handle = os.pidfd_open(pid)
        try:
            while os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                assert reconcile(store_home, [plan.run_id]) == [], f"round {number}: judged a run that finishes"
                looks += 1
            assert reconcile(store_home, [plan.run_id]) == []
        finally:
            os.close(handle)
            assert exit_code(pid) == 0
        snapshot = FileRuns(store_home).snapshot(plan.run_id, whole=True)
        assert (snapshot.state, snapshot.verdict) == (RunState.COMPLETE, None), f"round {number}"
        case()
    print(f"{looks / CHEAP:.0f} looks a run")
    assert looks > 5 * CHEAP


@pytest.mark.row(15, cases=REAL)
@pytest.mark.timeout(120)
def test_real_runs_killed_as_they_finish_have_one_last_word(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    rng = random.Random(SEED)
    settings(live=AT_ONCE + 2)
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    model = script("brief", {"text": "a"}, {"sleep": 0.5}, {"text": "b"})
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    over, ids = threading.Event(), list[str]()

    def judge() -> None:
        while not over.is_set():
            reconcile(shared_home, ids[-AT_ONCE:])

    judging = threading.Thread(target=judge)
    judging.start()
    states = []
    try:
        for _ in range(REAL // AT_ONCE):
            begun = [launch(task="x", model=model) for _ in range(AT_ONCE)]
            ids += [run.id for run in begun]
            for run in begun:
                until(lambda run=run: run.home.run(run.id).events.exists(), 20, pause=0.002)
            moment = time.monotonic() + rng.uniform(0.0, 0.5)
            until(lambda moment=moment: time.monotonic() > moment, 2, pause=0.001)
            for run in begun:
                status = FileRuns(shared_home).snapshot(run.id, whole=True).status
                assert status is not None and status.runner is not None
                with contextlib.suppress(ProcessLookupError):
                    if not run.home.run(run.id).result.exists():
                        os.kill(status.runner.pid, signal.SIGKILL)
            for run in begun:
                assert run.wait(10)
                states.append(run.state)
                snapshot = FileRuns(shared_home).snapshot(run.id, whole=True)
                assert (snapshot.result is None) != (snapshot.verdict is None), "a verdict beside a result"
                case()
    finally:
        over.set()
        judging.join()
    print({str(state): states.count(state) for state in set(states)})
    assert set(states) <= {RunState.COMPLETE, RunState.LOST}
