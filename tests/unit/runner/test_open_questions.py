"""A question says who asks it and who answered; one that nobody waits for any more is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support import WHEN, make_plan, make_recovery, make_result, make_step, run_id
from unit.runner.flows import Carried, plan_flow, write_script

from subagents_nb import chain, parallel, step
from subagents_nb.domain.plans.plan import GroupItem
from subagents_nb.domain.runs.questions import Answered, Question, Reply
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling import asking
from subagents_nb.launching.starting.start_run import first_status
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.open_questions import Questions
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.runs.reader import read_document


@pytest.fixture
def home(tmp_path: Path) -> StoreHome:
    return open_home(tmp_path / "store")


class ParsedLaunch:
    """A run of two steps that can ask."""

    def __init__(self, home: StoreHome) -> None:
        self.home, self.told = home, list[str]()
        plan = make_plan(
            mode="parallel",
            steps=(make_step(), make_step(index=1)),
            items=(GroupItem(steps=(0, 1), concurrency=2),),
        )
        create_run(home, plan, make_recovery())
        self.writer = RunWriter(home.run(run_id()))
        first = first_status(plan)
        self.writer.status(first, milestone=True)
        journal = Journal(self.writer, plan, first, WorkClock())
        journal.begin()
        self.questions = Questions(self.writer, plan, journal, self.told.append)

    def reply(self, text: str, by: str = "a terminal") -> None:
        asking.reply(self.home, run_id(), text, question=None, answered_by=by)

    def events(self) -> list[dict[str, object]]:
        lines = map(json.loads, self.home.run(run_id()).events.read_bytes().splitlines())
        kept = ("type", "question", "step", "by", "open")
        return [{k: line[k] for k in kept if k in line} for line in lines if line["type"].startswith("question")]

    def answers(self) -> tuple[Answered, ...]:
        status = FileRuns(self.home).snapshot(run_id()).status
        assert status is not None
        return tuple(one.model_copy(update={"at": ""}) for one in status.answers)


async def sees(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_events_and_status_say_which_step_asked_and_from_where_it_was_answered(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def ask() -> str:
        task = asyncio.ensure_future(run.questions.ask("which file?", step=1))
        await sees(lambda: asking.open_questions(home, run_id()))
        (question,) = FileRuns(home).snapshot(run_id()).questions
        assert (question.step, question.question_id) == (1, "q1")
        run.reply("both")
        return await task

    assert asyncio.run(ask()) == "both"
    assert run.events() == [
        {"type": "question-asked", "question": "q1", "step": 1, "open": 1},
        {"type": "question-closed", "question": "q1", "step": 1, "by": "a terminal", "open": 0},
    ]
    assert run.answers() == (Answered(question_id="q1", step=1, by="a terminal", at=""),)
    assert run.told == ["step 1 asks: which file?"]
    with pytest.raises(RequestError, match=r"no open question\. q1 was answered already, from a terminal\."):
        run.reply("neither")
    assert read_document(home.run(run_id()).reply("q1"), Reply, run_id()).text == "both"


def test_a_question_whose_asker_is_ended_is_closed_and_takes_no_answer(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def leave() -> None:
        task = asyncio.ensure_future(run.questions.ask("which file?"))
        await sees(lambda: asking.open_questions(home, run_id()))
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(leave())
    assert asking.open_questions(home, run_id()) == []
    assert FileRuns(home).snapshot(run_id()).questions == ()
    assert run.events()[-1] == {"type": "question-closed", "question": "q1", "step": 0, "by": None, "open": 0}
    assert run.answers() == (Answered(question_id="q1", at=""),)
    with pytest.raises(RequestError, match="q1 is closed: whoever asked it was ended"):
        run.reply("both")
    with pytest.raises(RequestError, match=r"no open question q1\. q1 is closed"):
        asking.reply(home, run_id(), "both", question="q1", answered_by="python")


def test_an_answer_that_comes_as_the_asker_goes_keeps_its_place(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def leave() -> None:
        task = asyncio.ensure_future(run.questions.ask("which file?"))
        await sees(lambda: asking.open_questions(home, run_id()))
        run.reply("both", by="the notebook page")
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(leave())
    assert run.answers() == (Answered(question_id="q1", by="the notebook page", at=""),)
    assert not read_document(home.run(run_id()).reply("q1"), Reply, run_id()).closed


def test_several_open_questions_are_listed_with_who_asks(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def ask() -> None:
        tasks = [asyncio.ensure_future(run.questions.ask(f"is it {n}?", step=n)) for n in (0, 1)]
        await sees(lambda: len(asking.open_questions(home, run_id())) == 2)
        for task in tasks:
            task.cancel()
        with pytest.raises(RequestError, match="Several") as caught:
            run.reply("yes")
        assert str(caught.value).splitlines()[1:] == ["  q1 (step 0): is it 0?", "  q2 (step 1): is it 1?"]
        await asyncio.wait(tasks)

    asyncio.run(ask())


def test_an_ended_run_takes_no_answer_whatever_its_files_say(home: StoreHome) -> None:
    run = ParsedLaunch(home)
    run.writer.mail.question(Question(run_id=run_id(), question_id="q1", text="which?", asked_at=WHEN))
    assert len(asking.open_questions(home, run_id())) == 1
    run.writer.result(make_result(state=RunState.STOPPED))
    assert asking.open_questions(home, run_id()) == []
    with pytest.raises(RequestError, match="is stopped already; nobody waits for an answer"):
        run.reply("both")


def test_in_a_chain_the_step_that_asks_is_named_and_stopping_it_closes_its_question(
    home: StoreHome, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    asks = write_script(work, "asks", {"ask": "which file?"}, {"text": "x"})
    waits = write_script(work, "waits", {"await_steer": True})
    flow = chain(parallel(step("scout", "one", model=waits), step("scout", "two", model=asks, label="beta")))
    carried = Carried(home, plan_flow(work, flow))

    def stop_it(run: Carried) -> bool:
        questions = run.look().questions
        if not questions:
            return False
        assert [question.step for question in questions] == [1]
        run.ask("stop", step=1)
        return True

    def let_go(run: Carried) -> bool:
        status = run.look().status
        if status is None or status.steps[1].state != "stopped" or run.look().questions:
            return False
        with pytest.raises(RequestError, match="q1 is closed"):
            asking.reply(home, run.plan.run_id, "a.txt", question=None, answered_by="python")
        run.ask("steer", mode="steer", text="done", step=0)
        return True

    result = carried.carry_out(stop_it, let_go)
    assert [str(one.state) for one in result.steps] == ["complete", "stopped"]
