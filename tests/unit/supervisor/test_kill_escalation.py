"""Who is ended from outside: a runner that does not hear that its run shall stop, and nobody else."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support import WHEN, make_answer, make_plan, make_recovery, make_request, make_status, run_id

from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.runner.due import Due
from subagents_nb.store import RunWriter, create_run, open_home
from subagents_nb.store.files.codec import encode
from subagents_nb.supervisor.ends.kill_escalation import OVERDUE_S, STUCK_S, UNHEARD_S, KillEscalation, was_overdue
from subagents_nb.supervisor.ends.termination import stop_request_of


class Watch:
    """A run and the last resort against it, with a clock of their own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writer = create_run(open_home(root), make_plan(), make_recovery())
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.escalation = KillEscalation()
        self.show(0)

    def show(self, number: int, **more: Any) -> None:
        """Write a status as the runner would."""
        moment = f"2026-03-01T12:{number // 60:02d}:{number % 60:02d}.000Z"
        self.writer.status(make_status(updated_at=moment, **more), milestone=False)

    def after(self, seconds: float, *, alive: bool = False) -> list[str]:
        """Look once a second for so long; with `alive`, the runner goes on writing its status."""
        due: list[str] = []
        for number in range(int(seconds)):
            self.now += 1.0
            if alive:
                self.show(number + 1)
            due += self.escalation.due({run_id(): self.writer.paths})
        return due


def asked_ago(seconds: float) -> ControlRequest:
    """Return a stop that was asked for so long ago, by the wall clock."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    return make_request().model_copy(update={"asked_at": moment.isoformat(timespec="milliseconds")})


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path / "store", monkeypatch)


def test_a_run_that_does_not_hear_is_ended_after_its_time(watch: Watch) -> None:
    assert watch.after(10) == []
    watch.writer.mail.request(asked_ago(0))
    assert watch.after(UNHEARD_S) == []
    assert watch.after(1) == [run_id()]


@pytest.mark.parametrize("ago_s", [2.0, 50.0])
def test_a_watcher_that_begins_late_counts_from_when_the_stop_was_asked_for(watch: Watch, ago_s: float) -> None:
    watch.writer.mail.request(asked_ago(ago_s))
    watch.escalation = KillEscalation(since=watch.now - UNHEARD_S)
    assert watch.after(1) == [], "all may have stood still until now: it has a moment to answer"
    assert watch.after(1) == [run_id()]


def test_a_stop_counts_from_the_look_before_at_most(watch: Watch) -> None:
    assert watch.after(1) == []
    watch.writer.mail.request(asked_ago(50.0))
    assert watch.after(UNHEARD_S - 1) == []
    assert watch.after(1) == [run_id()]


def test_an_answer_an_announcement_or_a_mark_means_that_it_heard(watch: Watch) -> None:
    watch.writer.mail.request(make_request())
    watch.writer.mail.mark_heard(make_request())
    assert watch.after(40) == []
    second = make_request().model_copy(update={"request_id": "a-2"})
    watch.writer.mail.request(second)
    watch.writer.mail.answer(make_answer().model_copy(update={"request_id": "a-2"}))
    assert watch.after(40) == []
    watch.writer.mail.request(make_request().model_copy(update={"request_id": "a-3"}))
    watch.show(1, stopping=True)
    assert watch.after(40) == []


def test_a_runner_that_still_writes_its_status_is_given_longer_and_not_for_ever(watch: Watch) -> None:
    watch.writer.mail.request(asked_ago(0))
    assert watch.after(STUCK_S, alive=True) == []
    assert watch.after(1, alive=True) == [run_id()]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("stop-a-1.json", {"step": 0}),
        ("stop-zzz.json", {"verb": "steer", "text": "hi", "mode": "steer", "request_id": "other"}),
        ("stop-a-1.json", {"run_id": run_id(2)}),
        ("stop-a-2.json", {}),
    ],
    ids=["one step", "a steer", "another run", "another id"],
)
def test_what_is_no_stop_of_the_whole_run_ends_no_run(watch: Watch, name: str, fields: dict[str, Any]) -> None:
    known: dict[str, Any] = {"run_id": run_id(), "request_id": "a-1", "verb": "stop", "asked_at": WHEN}
    (watch.writer.paths.control / name).write_bytes(encode(ControlRequest.model_validate(known | fields)))
    assert watch.after(40) == []
    assert stop_request_of(watch.writer.paths) is None


def test_a_torn_stop_ends_no_run(watch: Watch) -> None:
    (watch.writer.paths.control / "stop-x.json").write_text('{"verb": "stop"')
    assert watch.after(40) == []


def test_a_run_without_a_readable_status_is_ended_too(watch: Watch) -> None:
    watch.writer.paths.status.unlink()
    RunWriter(watch.writer.paths).mail.request(asked_ago(0))
    assert watch.after(UNHEARD_S + 1) == [run_id()]


def test_a_runner_that_does_not_keep_its_deadline_is_ended_some_seconds_later(watch: Watch) -> None:
    due = Due(watch.writer.paths)
    due.say(20.0)
    assert watch.after(20 + OVERDUE_S, alive=True) == []
    assert watch.after(1, alive=True) == [run_id()], "alive or not: it can't keep time"
    assert was_overdue(watch.writer.paths), "whoever judges it knows why"


def test_a_runner_without_a_deadline_or_that_waits_for_somebody_is_given_all_time(watch: Watch) -> None:
    assert watch.after(100) == [], "one of an older version says nothing"
    due = Due(watch.writer.paths)
    assert watch.after(100) == []
    due.say(20.0)
    due.say(None)
    assert watch.after(100) == [], "it asks the person"
    due.say(50.0)
    assert watch.after(50) == [], "and works again, with what is left"
