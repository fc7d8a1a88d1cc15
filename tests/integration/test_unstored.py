"""A result that nobody could store: the exit code says so, and whoever watches the process says what it means."""

from __future__ import annotations

import shutil

import pytest
from crash.lives import a_plan, exit_code, fork, live
from support import script, until

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.postmortem import UNSTORED
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.results.outcome import failure
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.ends.termination import record_end
from subagents_nb.supervisor.processes.orphans import Orphans

pytestmark = pytest.mark.timeout(60)


def test_a_runner_whose_result_has_no_place_any_more_says_so_as_it_ends(store_home: StoreHome) -> None:
    plan = a_plan(1, model=script("long", {"text": "one "}, {"sleep": 30}))
    pid = fork(lambda: live(store_home, plan))
    until(lambda: FileRuns(store_home).snapshot(plan.run_id).tail, 20, what="the first words")
    shutil.rmtree(store_home.run(plan.run_id).root)
    assert exit_code(pid) == UNSTORED


def test_whoever_watched_a_run_whose_result_never_fitted_says_that_it_failed_and_how_to_go_on(
    store_home: StoreHome,
) -> None:
    plan = a_plan(1)
    assert exit_code(fork(lambda: live(store_home, plan))) == 0
    paths = store_home.run(plan.run_id)
    paths.result.unlink()
    paths.err.write_text("result not stored: No space left on device\n")
    status = paths.status.read_text()
    paths.status.write_text(status.replace('"complete"', '"running"'))
    started = read_document(paths.process, ProcessRecord, plan.run_id)
    record_end(store_home, plan.run_id, started=started, exit_code=UNSTORED, orphans=Orphans(), judge="supervisor")
    snapshot = FileRuns(store_home).snapshot(plan.run_id)
    assert (snapshot.state, snapshot.reason) == (RunState.FAILED, "not-stored")
    text = str(failure(snapshot))
    assert "its result could not be stored: No space left on device. Make room" in text
