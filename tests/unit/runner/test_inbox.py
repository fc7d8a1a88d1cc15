"""Receipts of steering: what is told last is what became of it."""

from __future__ import annotations

import threading
from pathlib import Path

from support import make_plan, make_recovery, make_status, run_id

from subagents_nb.domain.runs.control import ControlAnswer, ControlRequest
from subagents_nb.domain.runs.states import RunState
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.inbox import RunInbox
from subagents_nb.store import RunWriter, create_run, open_home
from subagents_nb.store.runs.reader import read_document


class SlowToQueue(RunWriter):
    """Takes its time over the first receipt, until the engine has had every chance to take the message."""

    def __init__(self, paths: object, taken: threading.Event) -> None:
        super().__init__(paths)  # type: ignore[arg-type]
        self._taken = taken

    def answer(self, answer: ControlAnswer) -> None:
        if answer.outcome == "queued":
            self._taken.wait(0.5)
        super().answer(answer)


def test_a_message_that_is_taken_at_once_is_told_as_delivered(tmp_path: Path) -> None:
    home = open_home(tmp_path / "store")
    create_run(home, make_plan(), make_recovery())
    taken = threading.Event()
    writer = SlowToQueue(home.run(run_id()), taken)
    first = make_status(state=RunState.QUEUED)
    writer.status(first, milestone=True)
    inbox = RunInbox(writer, Journal(writer, make_plan(), first, WorkClock()))
    asked = {"run_id": run_id(), "request_id": "q1", "asked_at": "2026-01-01T00:00:00Z", "verb": "steer"}
    request = ControlRequest.model_validate({**asked, "text": "look", "mode": "steer"})

    def engine() -> None:
        while not inbox.steers():
            threading.Event().wait(0.005)
        taken.set()

    thread = threading.Thread(target=engine)
    thread.start()
    assert inbox.put(request)
    thread.join(10)
    told = read_document(home.run(run_id()).answers / "q1.json", ControlAnswer, run_id())
    assert told.outcome == "delivered"
