"""The queue of runs that wait: what takes a run out of it, what does not, and what is answered meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import WHEN, make_identity, make_plan, make_recovery, make_status, make_step, make_verdict, run_id, until

from subagents_nb.domain.plans.plan import StepItem
from subagents_nb.domain.runs.control import PARENT, ControlAnswer, ControlRequest, Verb
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import Unreadable
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import take_slot
from subagents_nb.supervisor.warm.process_table import ProcessTable, SpawnRequest
from subagents_nb.supervisor.warm.queue import Queue, QueuedRun


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    """A store whose only place is taken, so that whoever waits goes on waiting."""
    home = open_home(tmp_path / "store")
    place = take_slot(home, 1)
    assert place is not None
    yield home
    os.close(place)


@pytest.fixture
def queue(home: StoreHome) -> Queue:
    return Queue(home, ProcessTable(home, forking=False))


def wait_in(queue: Queue, home: StoreHome, number: int = 1, **plan: Any) -> RunWriter:
    """Put a run into the queue, as its launcher would."""
    made = make_plan(number, **plan)
    writer = create_run(home, made, make_recovery(number))
    keeper = make_identity(token=made.token)
    writer.status(make_status(number, state=RunState.QUEUED, queue_keeper=keeper), milestone=False)
    line.enter(home, made.run_id, 1)
    queue.add(QueuedRun(SpawnRequest(made.run_id, made.token, "/", {}), limit=1))
    return writer


def ask(writer: RunWriter, verb: Verb, name: str = "a", **fields: Any) -> None:
    request = {"run_id": writer.paths.root.name, "request_id": name, "verb": verb, "asked_at": WHEN, **fields}
    writer.mail.request(ControlRequest.model_validate(request))


def answered(writer: RunWriter, name: str = "a") -> tuple[str, str] | None:
    try:
        answer = read_document(writer.paths.answers / f"{name}.json", ControlAnswer, writer.paths.root.name)
    except Unreadable:
        return None
    return answer.outcome, answer.text


def seen(home: StoreHome, number: int = 1) -> Snapshot:
    return FileRuns(home).snapshot(run_id(number))


@contextlib.contextmanager
def lowered(what: int, to: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (to, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def a_chain() -> dict[str, Any]:
    steps = (make_step(), make_step(index=1))
    items = tuple(StepItem(step=number) for number in range(2))
    return {"mode": "chain", "steps": steps, "items": items}


def test_a_run_that_can_not_be_looked_at_just_now_keeps_its_turn(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home)
    for spare in range(6):
        with lowered(resource.RLIMIT_NOFILE, 3 + spare):
            queue.step()
        assert len(queue) == 1, f"dropped with {spare} descriptors"
    ask(writer, "stop", reason="enough")
    with lowered(resource.RLIMIT_NOFILE, 3):
        queue.step()
    assert (len(queue), seen(home).state) == (1, RunState.QUEUED)
    queue.step()
    assert (len(queue), seen(home).error) == (0, "Stopped before it began: enough.")


def test_a_status_that_nobody_can_read_is_no_reason_to_drop_a_run_in_silence(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home)
    writer.paths.status.write_bytes(b"{")
    queue.step()
    assert len(queue) == 1


def test_a_run_that_has_a_last_word_or_no_directory_leaves_the_queue(queue: Queue, home: StoreHome) -> None:
    judged, deleted = wait_in(queue, home), wait_in(queue, home, 2)
    queue.step()
    assert len(queue) == 2
    judged.verdict(make_verdict())
    shutil.rmtree(deleted.paths.root)
    queue.step()
    assert len(queue) == 0


def test_the_end_of_a_run_that_can_not_be_written_now_is_written_later(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home)
    ask(writer, "interrupt")
    with lowered(resource.RLIMIT_FSIZE, 0):  # nothing at all can be written
        queue.step()
        assert len(queue) == 1, "the supervisor has something to do still"
    assert (seen(home).state, answered(writer)) == (RunState.QUEUED, None)
    queue.step()
    assert len(queue) == 0
    assert (seen(home).state, answered(writer)) == (
        RunState.STOPPED,
        ("accepted", "it had not begun, and now it never will"),
    )


@pytest.mark.parametrize(
    ("verb", "reason", "said"),
    [
        ("stop", "stopped", "Stopped before it began: lunch."),
        (
            "interrupt",
            "interrupted",
            "Interrupted before it began: lunch. It has no session to resume. Launch it with ",
        ),
        ("drain", "drained", "It was asked to start nothing new before it began. Launch it with subagents_nb.attach("),
    ],
)
@pytest.mark.parametrize(("asked_by", "actor"), [("python", "person"), (PARENT, "parent")])
def test_what_ends_a_run_ends_one_that_waits(
    queue: Queue, home: StoreHome, verb: Verb, reason: str, said: str, asked_by: str, actor: str
) -> None:
    writer = wait_in(queue, home)
    ask(writer, "retune", "c", retune={"timeout_s": 5.0})
    queue.step()
    assert (answered(writer, "c") or "")[0] == "queued"
    ask(writer, verb, reason="lunch", asked_by=asked_by)
    ask(writer, "steer", "b", text="hurry", mode="steer")
    queue.step()
    found = seen(home)
    assert (found.state, found.reason, found.ended_in_queue) == (RunState.STOPPED, reason, True)
    assert found.terminal_record is not None and found.terminal_record.actor == actor
    assert found.error is not None and found.error.startswith(said)
    assert (answered(writer) or "")[0] == "accepted"
    late = ("too-late", "the run was ended before it began")
    assert (answered(writer, "b"), answered(writer, "c")) == (late, late)


def test_what_changes_a_run_is_queued_for_it_and_said_once(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home)
    ask(writer, "retune", retune={"timeout_s": 5.0})
    ask(writer, "steer", "b", text="look at May too", mode="steer")
    queue.step()
    later = ("queued", "it waits for a free place; this is carried out when it has begun")
    assert (answered(writer), answered(writer, "b")) == (later, later)
    (writer.paths.answers / "a.json").unlink()
    queue.step()
    assert answered(writer) is None
    assert len(queue) == 1


def test_an_answer_that_could_not_be_written_is_given_in_a_later_round(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home)
    ask(writer, "retune", retune={"timeout_s": 5.0})
    with lowered(resource.RLIMIT_FSIZE, 0):
        queue.step()
    assert answered(writer) is None
    queue.step()
    assert (answered(writer) or "")[0] == "queued"


def test_what_can_never_be_done_is_refused_at_once(queue: Queue, home: StoreHome) -> None:
    one, many = wait_in(queue, home), wait_in(queue, home, 2, **a_chain())
    ask(one, "cancel-tool", call_id="c")
    ask(one, "steer", "b", text="x", mode="steer", step=4)
    (one.paths.control / "retune-c.json").write_text("{}")
    ask(many, "interrupt", step=1)
    ask(many, "steer", "b", text="x", mode="steer")
    queue.step()
    assert answered(one) == ("refused", "no tool call is open, for the run has not begun")
    assert answered(one, "b") == ("refused", "the run has no steps[4]")
    assert (answered(one, "c") or "")[0] == "refused"
    assert answered(many) == ("refused", "one step can't be paused by itself; interrupt the run, or stop the step")
    assert answered(many, "b") == ("refused", "no step is at work yet; say which one is meant")
    assert len(queue) == 2


def test_the_stop_of_one_step_ends_no_chain_that_waits(queue: Queue, home: StoreHome) -> None:
    writer = wait_in(queue, home, **a_chain())
    ask(writer, "stop", step=1)
    queue.step()
    assert (len(queue), seen(home).state, (answered(writer) or "")[0]) == (1, RunState.QUEUED, "queued")


def test_launchers_are_told_as_long_as_runs_wait(queue: Queue, home: StoreHome) -> None:
    def may_begin() -> bool:
        place = take_slot(home, 2)
        if place is not None:
            os.close(place)
        return place is not None

    assert may_begin()
    writer = wait_in(queue, home)
    line.enter(home, run_id(2), 2)
    queue.add(QueuedRun(SpawnRequest(run_id(2), "t", "/", {}), limit=2))  # its directory is gone by the next round
    assert not may_begin(), "a run waits that could have this place"
    queue.step()
    assert may_begin(), "the one that waits can't begin while another is live"
    ask(writer, "stop")
    queue.step()
    assert not line.standing(home)


def test_a_run_that_can_not_be_started_in_its_turn_tells_the_person_once(
    queue: Queue, home: StoreHome, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    command = ("sh", "-c", f"cat >> {told}; echo >> {told}")
    made = make_plan(notify_command=command)
    writer = create_run(home, made, make_recovery())
    writer.paths.status.write_bytes(b"[]")
    line.enter(home, made.run_id, 2)
    queue.add(QueuedRun(SpawnRequest(made.run_id, made.token, "/", {}), limit=2))
    queue.step()
    queue.step()
    assert seen(home).state is RunState.FAILED and len(queue) == 0
    until(lambda: told.exists() and told.read_text().endswith("}\n"), 10)
    said = json.loads(told.read_text())
    assert said["run_id"] == made.run_id and "could not be started when its turn came" in said["text"]
