"""The line outlives who keeps it: whoever looks after the store next takes it over, each run once and in order."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_status, run_id, until

from subagents_nb.domain.runs.records import Identity, RunStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import take_slot
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.warm.process_table import ProcessTable, SpawnRequest
from subagents_nb.supervisor.warm.queue import Queue, QueuedRun
from subagents_nb.supervisor.warm.queue_owner import Keeping
from subagents_nb.supervisor.warm.reconcile import reconcile
from subagents_nb.supervisor.warm.takeover import keep_environ

TOKEN = "f" * 32


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps the turns of runs, as far as their records say."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def dead() -> Identity:
    with subprocess.Popen(["true"]) as process:
        return identify(process.pid, TOKEN)


def waits(home: StoreHome, number: int, keeper: Identity, *, limit: int = 1, needs: tuple[str, ...] = ()) -> RunWriter:
    writer = create_run(home, make_plan(number), make_recovery(number))
    line.enter(home, run_id(number), limit, needs)
    writer.status(make_status(number, state=RunState.QUEUED, queue_keeper=keeper), milestone=False)
    return writer


def status(home: StoreHome, number: int = 1) -> RunStatus:
    return read_document(home.run(run_id(number)).status, RunStatus, run_id(number))


def taken(home: StoreHome, **how: Any) -> list[str]:
    return [one.request.run_id for one in Keeping(home, {"PATH": "/bin"}, look_s=0.0, **how).take_over(())]


def test_the_runs_of_a_dead_keeper_are_taken_over_in_order_and_once(home: StoreHome) -> None:
    keeper = dead()
    for number in (3, 1, 2):
        waits(home, number, keeper)
    assert taken(home) == [run_id(1), run_id(2), run_id(3)]
    mine = status(home).queue_keeper
    assert mine is not None and mine.pid == os.getpid()
    assert all(status(home, number).state is RunState.QUEUED for number in (1, 2, 3))
    assert reconcile(home, [run_id(1)]) == [], "nobody is told that it failed"


def test_the_runs_of_a_keeper_that_lives_are_its_own(home: StoreHome, other: subprocess.Popen[bytes]) -> None:
    waits(home, 1, identify(other.pid, TOKEN))
    assert taken(home) == []


def test_a_keeper_that_stands_still_is_passed_by(home: StoreHome, other: subprocess.Popen[bytes]) -> None:
    waits(home, 1, identify(other.pid, TOKEN))
    keeping = Keeping(home, {}, look_s=0.0, frozen_s=0.05)
    assert not list(keeping.take_over(()))
    other.send_signal(signal.SIGSTOP)
    until(lambda: list(keeping.take_over(())), 10, what="the end of its patience")
    other.send_signal(signal.SIGCONT)


def test_a_keeper_that_wakes_up_finds_that_its_runs_are_anothers(home: StoreHome) -> None:
    awake = Queue(home, ProcessTable(home, forking=False))
    waits(home, 1, dead())
    awake.add(QueuedRun(SpawnRequest(run_id(1), TOKEN, "/", {}), limit=1))
    assert Keeping(home).keeps(run_id(1))
    writer = RunWriter(home.run(run_id(1)))
    writer.status(status(home).model_copy(update={"queue_keeper": identify(os.getppid(), TOKEN)}), milestone=False)
    awake.step()
    assert len(awake) == 0 and line.standing(home), "it begins nothing, and takes nobody out of the line"
    assert not home.run(run_id(1)).process.exists()


def test_after_the_machine_went_down_nothing_begins_by_itself(home: StoreHome) -> None:
    waits(home, 1, dead().model_copy(update={"boot_id": "another"}))
    assert taken(home) == []
    assert reconcile(home, [run_id(1)]) == [run_id(1)], "it is told, and how to launch it"


def test_a_run_of_another_interpreter_is_left_to_that_one_while_it_is_there(home: StoreHome, tmp_path: Path) -> None:
    waits(home, 1, dead())
    (turn,) = line.standing(home)
    there = tmp_path / "python"
    there.touch()
    turn.path.write_text(f'{{"limit": 1, "python": "{there}", "variables": []}}')
    assert taken(home) == []
    there.unlink()
    assert taken(home) == [run_id(1)]


def test_a_run_that_lacks_its_key_keeps_its_turn_says_so_and_holds_up_nobody(home: StoreHome) -> None:
    place = take_slot(home, 1)
    assert place is not None  # nothing begins in this test
    queue = Queue(home, ProcessTable(home, forking=False))
    waits(home, 1, dead(), limit=16, needs=("NO_SUCH_KEY",))
    queue.step()
    assert (status(home).lacks, status(home).state) == (("NO_SUCH_KEY",), RunState.QUEUED)
    assert len(queue) == 0, "a supervisor may leave: there is nothing that it could do"
    free = take_slot(home, 16)
    assert free is not None, "others go past it"
    for handle in (free, place):
        os.close(handle)
    held = [take_slot(home, 16) for _ in range(16)]
    queue.add(QueuedRun(SpawnRequest(run_id(1), TOKEN, "/", {"NO_SUCH_KEY": "k"}), limit=16))
    assert (status(home).lacks, len(queue)) == ((), 1)
    assert [turn.limit for turn in line.standing(home)] == [16]
    assert b"NO_SUCH_KEY" in line.standing(home)[0].path.read_bytes()
    for handle in held:
        os.close(handle or -1)


def test_no_value_of_a_variable_is_written(home: StoreHome) -> None:
    waits(home, 1, dead(), needs=("A_KEY",))
    keep_environ(home, run_id(1), {"A_KEY": "CANARY-1"})
    list(Keeping(home, {"A_KEY": "CANARY-1"}).take_over(()))
    written = [path for path in home.root.rglob("*") if path.is_file() and b"CANARY" in path.read_bytes()]
    assert written == []


def test_who_stands_in_the_line_and_is_over_or_gone_leaves_it(home: StoreHome) -> None:
    line.enter(home, run_id(7), 16)
    began = waits(home, 1, dead())
    began.status(make_status(1), milestone=False)
    assert taken(home) == [] and line.standing(home) == []


def test_what_a_waiting_run_lacks_is_said_in_words(home: StoreHome) -> None:
    waits(home, 1, dead(), needs=("A_KEY", "B_KEY"))
    assert FileRuns(home).snapshot(run_id(1)).waits_for == "a free place"
    taken(home)
    assert FileRuns(home).snapshot(run_id(1)).waits_for == "A_KEY and B_KEY: look at it in a kernel that has them"
