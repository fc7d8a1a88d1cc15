"""The questions of a live run are those whose files wait, whatever its status says already or still."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import WHEN, make_plan, make_recovery, make_result, make_status, run_id

from subagents_nb.domain.runs.questions import OpenQuestion, Question, Reply
from subagents_nb.launching.controlling.asking import open_questions
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


@pytest.fixture
def writer(home: StoreHome) -> RunWriter:
    return create_run(home, make_plan(), make_recovery())


def shown(*names: str) -> tuple[OpenQuestion, ...]:
    return tuple(OpenQuestion(question_id=name, text=f"text {name}", asked_at=f"{WHEN}{name}") for name in names)


def ask(writer: RunWriter, name: str) -> None:
    question = Question(run_id=run_id(), question_id=name, text=f"text {name}", asked_at=f"{WHEN}{name}")
    writer.mail.question(question)


def answer(writer: RunWriter, name: str) -> None:
    writer.mail.reply(Reply(run_id=run_id(), question_id=name, text="yes", answered_at=WHEN, answered_by="Python"))


def expect(home: StoreHome, *names: str) -> None:
    assert FileRuns(home).snapshot(run_id()).questions == shown(*names)
    assert [question.question_id for question in open_questions(home, run_id())] == list(names)


def test_a_question_is_there_before_the_status_says_so_and_gone_once_it_is_answered(
    home: StoreHome, writer: RunWriter
) -> None:
    writer.status(make_status(), milestone=True)
    expect(home)
    ask(writer, "q1")
    expect(home, "q1")
    ask(writer, "q2")
    writer.status(make_status(questions=shown("q1", "q2")), milestone=True)
    expect(home, "q1", "q2")
    answer(writer, "q1")
    expect(home, "q2")
    (writer.paths.questions / "q3.json").write_bytes(b"{")
    expect(home, "q2")


def test_a_run_that_has_ended_has_no_question(home: StoreHome, writer: RunWriter) -> None:
    writer.status(make_status(questions=shown("q1")), milestone=True)
    ask(writer, "q1")
    writer.result(make_result())
    assert FileRuns(home).snapshot(run_id()).questions == ()
