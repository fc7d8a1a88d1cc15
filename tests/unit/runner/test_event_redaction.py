"""What a runner writes holds no secret of its environment, however an engine comes to say one."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_status, make_step, run_id

from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.runs.control import ControlRequest
from subagents_nb.domain.runs.events import (
    EngineEvent,
    FileChanged,
    ModelAsked,
    Noticed,
    StepOutcome,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
)
from subagents_nb.domain.runs.records import StepResult, first_step
from subagents_nb.domain.runs.states import RunEvent, RunState, StepState
from subagents_nb.runner.journal.event_redaction import EventRedactor
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.processes.stdio import forgive
from subagents_nb.runner.steps.inbox import RunInbox
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home

SECRET = "canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def journal(home: StoreHome) -> Journal:
    create_run(home, make_plan(), make_recovery())
    step = first_step(make_step()).model_copy(update={"tail": "working"})
    first, writer = make_status(state=RunState.QUEUED, steps=(step,)), RunWriter(home.run(run_id()))
    writer.status(first, milestone=True)
    made = Journal(writer, make_plan(), first, WorkClock())
    made.step_began(0)
    made.start()
    return made


def told(clean: EventRedactor, *events: EngineEvent) -> list[EngineEvent]:
    return [one for event in events for one in clean.events(0, event)]


def halves(kind: type[TextStreamed] | type[ThoughtStreamed]) -> list[EngineEvent]:
    return [kind(SECRET[:9]), kind(SECRET[9:])]


def test_nothing_that_is_written_of_a_run_holds_a_secret(home: StoreHome, journal: Journal) -> None:
    for event in (
        *halves(ThoughtStreamed),
        *halves(TextStreamed),
        ToolStarted("c1", f"use {SECRET}", SECRET),
        ToolEnded("c1", ok=False, seconds=0.1, preview=f"got {SECRET}", refused=f"not {SECRET}"),
        Noticed("x", f"see {SECRET}"),
        TextStreamed(SECRET[:5]),
    ):
        journal.report(0, event)
        journal.flush()
    step = journal.draft(0).model_copy(update={"state": StepState.FAILED, "error": f"bad key {SECRET}"})
    journal.step_ended(step)
    assert journal.finish(event=RunEvent.FAIL, reason="model", error=f"bad key {SECRET}")
    root = home.run(run_id()).root
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {"status.json", "events.jsonl", "result.json"} <= {path.name for path in files}
    assert not [path.name for path in files if SECRET.encode() in path.read_bytes()]
    snapshot = FileRuns(home).snapshot(run_id(), whole=True)
    assert snapshot.error == "bad key [redacted]"
    assert snapshot.status is not None
    assert snapshot.status.steps[0].tail == f"working[redacted]{SECRET[:5]}", (
        "what completes no secret is let go at the end"
    )


def test_a_step_that_is_cut_off_says_no_secret_either(home: StoreHome, journal: Journal) -> None:
    def cut_off(draft: StepResult) -> StepResult:
        return draft.model_copy(update={"state": StepState.STOPPED, "error": f"stopped: {SECRET}"})

    journal.report(0, TextStreamed(SECRET[:9]))
    journal.finish(event=RunEvent.STOP, reason="stopped", actor="person", error=f"s {SECRET}", unfinished=cut_off)
    assert SECRET.encode() not in home.run(run_id()).result.read_bytes()
    assert FileRuns(home).snapshot(run_id()).tail == f"working{SECRET[:9]}"


def test_the_end_of_a_stream_is_kept_back_no_longer_than_its_answer() -> None:
    clean = EventRedactor(make_plan())
    assert told(clean, TextStreamed("it is can")) == [TextStreamed("it is ")]
    assert told(clean, FileChanged("a.py")) == [FileChanged("a.py")], "this ends no answer"
    assert told(clean, ModelAsked(2)) == [TextStreamed("can"), ModelAsked(2)]
    assert told(clean, ThoughtStreamed("I c")) == [ThoughtStreamed("I ")]
    assert told(clean, TextStreamed("So.")) == [ThoughtStreamed("c"), TextStreamed("So.")]
    assert told(clean, TextStreamed("ca"), TextStreamed("ke")) == [TextStreamed("cake")]


def test_steps_that_stream_at_the_same_time_do_not_meet() -> None:
    clean = EventRedactor(make_plan())
    assert list(clean.events(0, TextStreamed(SECRET[:9]))) == []
    assert list(clean.events(1, TextStreamed(SECRET[9:]))) == [TextStreamed(SECRET[9:])]
    assert list(clean.events(0, TextStreamed(SECRET[9:]))) == [TextStreamed("[redacted]")]


def test_of_a_preview_that_was_cut_within_a_secret_the_secrets_beginning_goes_too() -> None:
    clean = EventRedactor(make_plan())
    assert clean.preview("x" * 150 + SECRET[:10]) == "x" * 150
    assert clean.preview(f"use {SECRET[:10]}…") == "use …"
    assert clean.preview(f"use {SECRET[:10]}") == f"use {SECRET[:10]}", "it was not cut"


def test_an_outcome_is_clean_in_its_text_and_its_value() -> None:
    clean = EventRedactor(make_plan())
    given = StepOutcome(text=f"see {SECRET}", has_value=True, value={"key": [SECRET, 1, None]})
    assert clean.outcome(given) == StepOutcome(
        text="see [redacted]", has_value=True, value={"key": ["[redacted]", 1, None]}
    )


def test_the_variable_that_a_models_endpoint_names_counts_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB", "plain words")
    endpoints = {"lab": Endpoint(base_url="http://x/v1", key_env="LAB")}
    step = make_step(model="scripted:echo").model_copy(
        update={"model": parse_model("lab:m", origin="call", endpoints=endpoints)}
    )
    assert EventRedactor(make_plan())("plain words") == "plain words"
    assert EventRedactor(make_plan(steps=(step,)))("plain words") == "[redacted]"
    clean = EventRedactor(make_plan())
    clean.know([step.model])
    assert clean("plain words") == "[redacted]"


def test_the_preview_of_a_steering_message_is_clean_and_the_message_is_not_changed(
    home: StoreHome, journal: Journal
) -> None:
    inbox = RunInbox(RunWriter(home.run(run_id())), journal)
    asked = {"run_id": run_id(), "request_id": "q1", "asked_at": "2026-01-01T00:00:00Z", "verb": "steer"}
    inbox.put(ControlRequest.model_validate({**asked, "text": f"use {SECRET} now", "mode": "steer"}))
    assert inbox.steers() == [f"use {SECRET} now"]
    status = FileRuns(home).snapshot(run_id()).status
    assert status is not None
    assert [receipt.preview for receipt in status.steering] == ["use [redacted] now"]


def test_what_a_runner_says_of_itself_is_clean(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    forgive(EventRedactor(make_plan()))
    print(f"a fault: {SECRET}", file=sys.stderr)
    assert capfd.readouterr().err == "a fault: [redacted]\n"
