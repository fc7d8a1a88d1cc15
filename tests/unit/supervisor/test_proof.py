from __future__ import annotations

from pathlib import Path

import pytest
from support import make_plan, make_process, make_recovery, make_result, make_status

from subagents_nb.domain.runs.exit_report import ChildEnd, ExitReport, ProcessRecord
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.ends.proof import prove
from subagents_nb.supervisor.ends.termination import record_end
from subagents_nb.supervisor.processes.orphans import Orphans

STARTED = make_process().model_copy(update={"state": "pending", "exit_code": None})
SHELL = ChildEnd(pid=70, group=70, how="exited", code=0, seen_by="runner", group_empty=True)
CLEAN = Orphans(empty=True)


def account(*children: ChildEnd, **more: object) -> ExitReport:
    fields: dict[str, object] = {"run_id": STARTED.run_id, "token": STARTED.token, "pid": STARTED.pid}
    return ExitReport.model_validate({**fields, "children": children, **more})


@pytest.mark.parametrize(
    ("said", "left", "expected"),
    [
        (account(SHELL), CLEAN, ("observed", None, "agrees")),
        # What it saw running, or what went away from it, we ended: that is no contradiction.
        (account(ChildEnd(pid=70)), Orphans((70,), empty=True), ("observed", None, "agrees")),
        (account(SHELL), Orphans((71,), empty=True), ("observed", None, "agrees")),
        (account(SHELL), Orphans((70,), empty=True), ("observed", None, "differs")),
        (account(SHELL), Orphans((70,), empty=False), ("unknown", "process-tree-unverified", "differs")),
        (account(SHELL), Orphans(), ("unknown", "unsupported-platform", "agrees")),
        (account(SHELL, token="e" * 32), CLEAN, ("unknown", "runner-instance-mismatch", "differs")),
        (account(SHELL, pid=5), CLEAN, ("unknown", "runner-instance-mismatch", "differs")),
        ("malformed", CLEAN, ("unknown", "runner-candidate-malformed", "malformed")),
        ("missing", CLEAN, ("observed", None, None)),
        ("missing", Orphans((70,), empty=True), ("observed", None, "missing")),
        ("missing", Orphans((70,), empty=True, accounted=False), ("unknown", "runner-candidate-missing", "missing")),
    ],
)
def test_a_runners_account_can_take_a_proof_away_and_never_give_one(
    said: ExitReport, left: Orphans, expected: tuple[str, str | None, str | None]
) -> None:
    assert prove(began=True, ended_itself=True, orphans=left, report=said, started=STARTED) == expected


def test_a_runner_that_died_before_its_last_word_has_no_account_of_its_processes() -> None:
    proof = prove(began=True, ended_itself=False, orphans=CLEAN, report="missing", started=STARTED)
    assert proof == ("observed", None, "missing")


def test_where_nobody_knows_what_a_dead_runner_had_started_nothing_is_proved() -> None:
    left = Orphans(empty=True, accounted=False)
    proof = prove(began=True, ended_itself=False, orphans=left, report="missing", started=STARTED)
    assert proof == ("unknown", "runner-candidate-missing", "missing")


def test_a_session_that_is_still_held_in_the_runs_name_takes_the_proof_away() -> None:
    proof = prove(began=True, ended_itself=True, orphans=CLEAN, report="missing", started=STARTED, lease_held=True)
    assert proof[:2] == ("unknown", "session-lease-active")


def test_a_runner_that_never_began_has_started_nothing() -> None:
    assert (
        prove(began=False, ended_itself=False, orphans=CLEAN, report="missing", started=STARTED).state == "not-started"
    )


def ended_run(tmp_path: Path) -> StoreHome:
    home = open_home(tmp_path / "store")
    writer = create_run(home, make_plan(), make_recovery())
    writer.status(make_status(), milestone=True)
    writer.process(STARTED)
    writer.result(make_result())
    return home


def record(home: StoreHome, *, exit_code: int = 0) -> ProcessRecord:
    run_id = STARTED.run_id
    record_end(home, run_id, started=STARTED, exit_code=exit_code, signal=None, orphans=CLEAN, judge="supervisor")
    return read_document(home.run(run_id).process, ProcessRecord, run_id)


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"{", b'{"kind": "candidate"}', b'{"kind": "result"}'])
def test_an_account_that_cannot_be_read_leaves_the_end_unknown_with_the_reason(tmp_path: Path, content: bytes) -> None:
    home = ended_run(tmp_path)
    home.run(STARTED.run_id).candidate.write_bytes(content)
    proof = record(home)
    assert (proof.state, proof.reason, proof.candidate) == ("unknown", "runner-candidate-malformed", "malformed")


def test_the_first_proof_stands(tmp_path: Path) -> None:
    home = ended_run(tmp_path)
    first = record(home)
    assert first.state == "observed" and first.candidate is None
    assert record(home, exit_code=9) == first
