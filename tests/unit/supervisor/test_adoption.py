"""Runs whose watcher is gone: who is watched on, what is written down, and whose business it is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id, until

from subagents_nb.domain.runs.exit_report import ProcessRecord
from subagents_nb.domain.runs.records import Identity
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.files.disk import Disk
from subagents_nb.store.files.lock import hold
from subagents_nb.supervisor.ends.termination import watcher
from subagents_nb.supervisor.processes.identity import identify, is_zombie
from subagents_nb.supervisor.warm import adoption
from subagents_nb.supervisor.warm.adoption import Reattached
from subagents_nb.supervisor.warm.reconcile import reconcile

TOKEN = "f" * 32


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


def dead() -> Identity:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return identify(process.pid, TOKEN)


@pytest.fixture
def zombie() -> Iterator[Identity]:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        identity = identify(process.pid, TOKEN)
        process.kill()
        until(lambda: is_zombie(process.pid), 5)
        yield identity


def begun(home: StoreHome, *, observer: Identity | None, number: int = 1, **more: Any) -> RunWriter:
    """Store a run at work whose runner is dead, with a pending process record."""
    runner = dead()
    writer = create_run(home, make_plan(number), make_recovery(number))
    writer.status(make_status(number, runner=runner), milestone=False)
    fields = {"run_id": run_id(number), "state": "pending", "spawn": "cold", "token": TOKEN, "observer": observer}
    ids = {"pid": runner.pid, "start_ticks": runner.start_ticks, "observer_pid": observer.pid if observer else None}
    writer.process(ProcessRecord.model_validate({**fields, **ids, **more}))
    return writer


def record(home: StoreHome, number: int = 1) -> ProcessRecord:
    process = FileRuns(home).snapshot(run_id(number), whole=True).process
    assert process is not None
    return process


def test_a_run_that_ended_well_after_its_watcher_died_is_not_pending_for_ever(home: StoreHome) -> None:
    begun(home, observer=dead()).result(make_result())
    assert Reattached(home).find() == []
    proof = record(home)
    assert (proof.state, proof.reason, proof.group_empty) == ("unknown", "observer-unavailable", True)
    assert not home.run(run_id()).verdict.exists()


def test_a_run_that_died_with_its_watcher_is_judged_without_a_reader(home: StoreHome) -> None:
    begun(home, observer=dead())
    Reattached(home).find()
    verdict = FileRuns(home).snapshot(run_id(), whole=True).verdict
    assert verdict is not None and (verdict.state, verdict.judged_by) == ("lost", "supervisor")
    assert (record(home).state, record(home).reason) == ("unknown", "observer-unavailable")


def test_a_sweep_says_that_the_proof_is_a_repair(home: StoreHome) -> None:
    begun(home, observer=dead())
    assert reconcile(home, [run_id()]) == [run_id()]
    assert (record(home).state, record(home).reason) == ("unknown", "stale-repair")
    Reattached(home).find()
    assert record(home).reason == "stale-repair", "the first proof wins"


def test_a_watcher_that_is_a_zombie_or_whose_pid_is_another_process_now_watches_nobody(
    home: StoreHome, zombie: Identity
) -> None:
    own = identify(os.getpid(), TOKEN)
    assert own.start_ticks is not None
    begun(home, observer=zombie, number=1)
    begun(home, observer=own.model_copy(update={"start_ticks": own.start_ticks - 1}), number=2)
    begun(home, observer=None, number=3, observer_pid=zombie.pid)
    Reattached(home).find()
    assert [record(home, number).state for number in (1, 2, 3)] == ["unknown"] * 3


@pytest.mark.parametrize("change", [{}, {"host": "another"}, {"pid_namespace": "another"}], ids=str)
def test_a_watcher_that_lives_or_that_cannot_be_seen_from_here_is_left_to_its_work(
    home: StoreHome, change: dict[str, str]
) -> None:
    observer = identify(os.getpid(), TOKEN) if not change else dead().model_copy(update=change)
    begun(home, observer=observer)
    Reattached(home).find()
    assert record(home).state == "pending"
    reconcile(home, [run_id()])
    assert record(home).state == "pending"


def test_a_run_of_an_earlier_boot_left_nobody(home: StoreHome) -> None:
    begun(home, observer=dead().model_copy(update={"boot_id": "another"}))
    Reattached(home).find()
    assert (record(home).state, record(home).group_empty) == ("unknown", True)


def test_a_record_of_another_launch_is_not_believed(home: StoreHome) -> None:
    begun(home, observer=dead(), token="e" * 32)
    lock = hold(home.run(run_id()).lock)
    try:
        assert Reattached(home).find() == []
    finally:
        os.close(lock)
    assert record(home).state == "pending"


def test_a_status_that_names_a_process_of_another_launch_proves_no_death(home: StoreHome) -> None:
    writer = create_run(home, make_plan(), make_recovery())
    stranger = dead().model_copy(update={"token": "e" * 32})
    writer.status(make_status(runner=stranger), milestone=False)
    assert reconcile(home, [run_id()]) == []
    assert not writer.paths.verdict.exists()


def test_a_disk_that_takes_no_record_is_asked_again(home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(home, observer=dead()).result(make_result())

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    adopted = Reattached(home)
    with monkeypatch.context() as full:
        full.setattr(Disk, "replace", refuse)
        adopted.find()
        assert len(adopted) == 1
    assert record(home).state == "pending"

    def settled() -> bool:
        adopted.settle()
        return record(home).state == "unknown"

    until(settled, 5, what="the record")
    assert len(adopted) == 0


def test_old_runs_are_looked_at_too_a_few_at_a_time(home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "_AT_ONCE", 2)
    monkeypatch.setattr(adoption, "_PAUSE_S", 0.0)
    for number in range(1, 6):
        begun(home, observer=dead(), number=number).result(make_result(number))
    adopted, rounds = Reattached(home), 0
    while any(record(home, number).state == "pending" for number in range(1, 6)):
        adopted.find()
        rounds += 1
    assert rounds == 3


def test_a_living_run_is_watched_on_and_its_end_told_as_seen_by_nobody(home: StoreHome) -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as runner:
        who = identify(runner.pid, TOKEN)
        writer = begun(home, observer=dead(), pid=who.pid, start_ticks=who.start_ticks)
        writer.status(make_status(runner=who), milestone=False)
        lock = hold(writer.paths.lock)
        adopted = Reattached(home)
        (handle,) = adopted.find()
        assert record(home).observer == watcher(TOKEN)
        os.kill(runner.pid, signal.SIGKILL)
        os.close(lock)
        runner.wait()
        adopted.ended(handle)
    assert (record(home).state, record(home).reason) == ("unknown", "observer-unavailable")
    assert FileRuns(home).snapshot(run_id()).state == "lost"
