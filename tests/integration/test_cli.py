"""The verbs of the terminal, on real runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support import script, until

from subagents_nb import Run, attach, launch
from subagents_nb.cli import main
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]

Said = pytest.CaptureFixture[str]


def begin(*steps: dict[str, Any], name: str = "probe", **options: Any) -> Run:
    return launch("scout", "do it", model=script("script", *steps), name=name, **options)


def test_status_shows_the_answer_where_the_run_lies_and_what_it_takes(capsys: Said, shared_home: StoreHome) -> None:
    run = begin({"text": "three rows"})
    assert run.wait(30)
    assert main(["status", "probe"]) == 0
    said = capsys.readouterr().out
    assert "three rows" in said
    assert re.search(rf"{run.id}  {shared_home.runs}/{run.id}  \d+ KB of at most 100 MB", said)


def test_steer_tells_the_agent_and_says_when_it_was_told(capsys: Said) -> None:
    run = begin({"text": "a"}, {"await_steer": True})
    until(lambda: run.status.tail, 20)
    assert main(["steer", run.id, "look at May"]) == 0
    assert "the agent was told" in capsys.readouterr().out
    assert run.wait(30) and run.output.endswith("look at May")
    assert main(["steer", run.id, "and June"]) == 1
    assert "nothing to steer" in capsys.readouterr().err


def test_a_follow_up_is_told_when_the_turn_is_over(capsys: Said) -> None:
    run = begin({"text": "a"}, {"sleep": 0.5}, {"text": "b"})
    until(lambda: run.state is RunState.RUNNING, 20)
    assert main(["steer", "probe", "more", "--follow-up"]) == 0
    assert run.wait(30)
    assert "probe:" in capsys.readouterr().out


def test_answer_answers_the_open_question_and_a_named_one(capsys: Said) -> None:
    run = begin({"ask": "which column?"}, timeout=60)
    (question,) = until(lambda: run.questions, 20)
    assert main(["answer", run.id, "price", "--question", "q-none"]) == 1
    assert "no open question q-none" in capsys.readouterr().err
    assert main(["answer", run.id, "price", "--question", question.question_id]) == 0
    assert "answered: which column?" in capsys.readouterr().out
    assert run.wait(30) and "price" in run.output


def test_interrupt_pauses_and_resume_goes_on_under_a_name(capsys: Said) -> None:
    run = begin({"text": "a"}, {"sleep": 60}, timeout="10m")
    until(lambda: run.status.tail, 20)
    assert main(["interrupt", "probe", "--reason", "lunch"]) == 0
    assert "paused" in capsys.readouterr().out
    script("script", {"text": "done"})
    assert main(["resume", run.id, "go on", "--timeout", "5m", "--name", "later"]) == 0
    said = capsys.readouterr().out
    later = attach("later")
    assert said == f"later goes on from probe. See it: subagents-nb status {later.id}\n"
    assert later.wait(30)
    assert later.plan.resumes is not None and later.plan.resumes.run_id == run.id
    assert (later.plan.timeout_s, later.plan.origin.surface) == (300.0, "cli")
    limits = ["--max-requests", "3", "--usage-budget", "2k"]
    assert main(["resume", run.id, "go on", "--timeout", "5m", "--name", "last", *limits]) == 0
    last = attach("last")
    assert last.wait(30)
    budget = last.plan.usage_budget
    assert budget is not None and budget.tokens is not None
    assert (last.plan.steps[0].max_requests, budget.tokens.hard, budget.stop_running) == (3, 2000, True)


def test_resume_says_why_it_does_not_go_on(capsys: Said) -> None:
    run = begin({"text": "a"}, {"sleep": 60})
    until(lambda: run.state is RunState.RUNNING, 20)
    assert main(["resume", "probe", "go on"]) == 1
    assert "steer it instead" in capsys.readouterr().err
    run.stop()
    assert run.wait(30)


def test_gc_lists_deletes_and_brings_back(capsys: Said, shared_home: StoreHome) -> None:
    run = begin({"text": "a"})
    assert run.wait(30)
    until(lambda: run.home.run(run.id).process.exists() and '"pending"' not in run.home.run(run.id).process.read_text())
    assert main(["gc"]) == 0
    assert "Kept: 1 young." in capsys.readouterr().out
    assert main(["gc", "--dry-run", "--days", "0"]) == 0
    assert "1 run would be deleted" in capsys.readouterr().out
    assert shared_home.run(run.id).result.exists()
    assert main(["gc", "--days", "0"]) == 0
    assert f"  {run.id}  probe  complete, 0 days old" in capsys.readouterr().out
    assert main(["restore", "probe"]) == 0
    assert capsys.readouterr().out == f"probe is back: {run.id}\n"
    assert main(["gc", "--days", "0", "--now"]) == 0
    assert "1 run removed from the trash for good." in capsys.readouterr().out
    assert main(["restore", "probe"]) == 1
    assert "No run in the trash" in capsys.readouterr().err


def test_doctor_ends_well_when_nothing_needs_doing(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_MODEL", "scripted:echo")
    assert main(["doctor"]) == 0
    assert "locks" in capsys.readouterr().out
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "tepid")
    assert main(["doctor"]) == 1
    assert "→ unset SUBAGENTS_NB_SPAWN" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [["steer"], ["answer", "r"], ["resume"], ["gc", "--days", "soon"], ["interrupt"]])
def test_bad_usage_ends_with_two(capsys: Said, verb: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(verb)
    assert left.value.code == 2
    assert "usage: subagents-nb" in capsys.readouterr().err


def test_again_and_drain_are_verbs_of_a_terminal_too(capsys: Said) -> None:
    run = launch("delegate", "x", model="scripted:slow", name="probe", fresh=True)
    assert main(["drain", "probe"]) == 0
    assert capsys.readouterr().out.startswith("probe: ")
    run.stop()
    assert run.wait(10)
    assert main(["again", run.id]) == 0
    assert "works in a process of its own" in capsys.readouterr().out
    assert main(["stop", "--all"]) == 0
