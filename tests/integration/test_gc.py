"""Deleting old runs among real ones: what lives, waits or is resumed stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from support import alive, script, until

from subagents_nb import Run, attach, launch
from subagents_nb.domain.kept.retention import Keep
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchError, LaunchRefused, StoreError, UnknownRun
from subagents_nb.launching.stored.cleaning import gc, restore
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.lock import probe
from subagents_nb.store.waiting.admissions import BudgetExceeded, admit

pytestmark = pytest.mark.timeout(90)


def begin(model: str = "scripted:echo", **options: Any) -> Run:
    return launch("scout", "say this back", model=model, **options)


def over(run: Run) -> Run:
    """Wait until a run has ended and its process is gone and recorded."""
    assert run.wait(30)
    until(lambda: _recorded(run), 20, what="the proof of its end")
    until(lambda: probe(run.home.run(run.id).lock) == "free", 20, what="its lock")
    return run


def _recorded(run: Run) -> bool:
    process = FileRuns(run.home).snapshot(run.id, whole=True).process
    return process is not None and process.state != "pending"


def test_a_run_that_is_over_goes_and_comes_back_with_its_answer(shared_home: StoreHome) -> None:
    run = over(begin())
    done = gc(days=0)
    assert [deleted.run_id for deleted in done.deleted] == [run.id]
    with pytest.raises(UnknownRun):
        attach(run.id)
    assert restore(run.name).output == "say this back"
    assert over(attach(run.id).resume("go on")).output.endswith("go on")


def test_a_live_run_stays_and_finishes(shared_home: StoreHome) -> None:
    run = begin(script("patient", {"text": "a"}, {"await_steer": True}))
    until(lambda: run.state is RunState.RUNNING, 20)
    assert gc(days=0, now=True).kept == {Keep.LIVE: 1}
    run.steer("b")
    assert over(run).output.endswith("b")


def test_a_paused_run_stays(shared_home: StoreHome) -> None:
    run = begin(script("patient", {"text": "a"}, {"sleep": 60}))
    until(lambda: run.status.tail, 20)
    run.interrupt()
    over(run)
    assert gc(days=0, now=True).kept == {Keep.PAUSED: 1}


def test_a_run_with_an_open_question_stays_while_somebody_waits_for_the_answer(shared_home: StoreHome) -> None:
    run = begin(script("asks", {"text": "a"}, {"ask": "which one?"}), timeout=60)
    until(lambda: run.questions, 20)
    assert gc(days=0).kept == {Keep.LIVE: 1}
    run.stop()
    over(run)
    assert len(gc(days=0).deleted) == 1


def test_what_a_live_run_goes_on_from_stays(shared_home: StoreHome) -> None:
    model = script("talk", {"text": "a"})
    source = over(begin(model))
    script("talk", {"text": "b"}, {"await_steer": True})
    later = source.resume("go on")
    until(lambda: later.state is RunState.RUNNING, 20)
    assert gc(days=0, now=True).kept == {Keep.LIVE: 1, Keep.REFERENCED: 1}
    later.steer("c")
    over(later)
    assert {run.run_id for run in gc(days=0).deleted} == {source.id, later.id}


def test_nobody_goes_on_from_a_run_that_was_deleted(shared_home: StoreHome) -> None:
    run = over(begin())
    gc(days=0)
    with pytest.raises((StoreError, LaunchRefused, LaunchError)):
        run.resume("go on")
    assert os.listdir(shared_home.runs) == []


def test_a_run_whose_process_was_killed_gets_its_verdict_first_and_goes_with_a_later_pass(
    store_home: StoreHome,
) -> None:
    run = begin(script("patient", {"text": "a"}, {"sleep": 60}))
    until(lambda: run.status.tail, 20)
    whole = FileRuns(store_home).snapshot(run.id, whole=True)
    assert whole.status is not None and whole.status.runner is not None and whole.process is not None
    runner, shim = whole.status.runner.pid, whole.process.observer_pid
    assert shim is not None
    os.kill(shim, signal.SIGKILL)  # nobody is left to see the runner's end
    os.kill(runner, signal.SIGKILL)
    # A process passes for ended when its first thread has; its files are closed when the last one has.
    until(lambda: not alive(runner) and not alive(shim) and probe(store_home.run(run.id).lock) != "held", 20)
    assert gc(days=0).kept == {Keep.YOUNG: 1}
    assert FileRuns(store_home).snapshot(run.id).state is RunState.LOST
    assert [deleted.reason for deleted in gc(days=0).deleted] == ["lost, 0 days old"]


def test_passes_of_several_processes_at_once_delete_each_run_once(shared_home: StoreHome) -> None:
    ids = {over(begin()).id for _ in range(3)}
    command = [sys.executable, "-m", "subagents_nb.cli", "gc", "--days", "0"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [child.communicate(timeout=60) for child in children]
    refused = [errors for _, errors in said if errors]
    assert all("Another process is deleting" in errors for errors in refused) and len(refused) < 4
    assert sorted(line.split()[0] for out, _ in said for line in out.splitlines() if line.startswith("  r-")) == sorted(
        ids
    )
    assert os.listdir(shared_home.runs) == []


def test_the_budget_of_a_real_run_is_deleted_with_it(shared_home: StoreHome) -> None:
    run = over(begin())
    assert admit(shared_home.run(run.id), 64, path=run.id)[-1] == 63
    with pytest.raises(BudgetExceeded, match="RUN_FANOUT_LIMIT"):
        admit(shared_home.run(run.id), 1, path=run.id)
    assert len(gc(days=0, now=True).removed) == 1
