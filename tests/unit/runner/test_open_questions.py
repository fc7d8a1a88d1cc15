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
from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.plans.plan import GroupItem
from subagents_nb.domain.policy.permissions import PermissionAnswer, call_as_shown
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.questions import Answered, Question, Reply
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling import asking
from subagents_nb.launching.starting.start_run import first_status
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.open_questions import Questions, StepPermit
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.runs.reader import read_document
from subagents_nb.store.runs.requests import stops_of


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
        self.plan, self.journal = plan, (journal := Journal(self.writer, plan, first, WorkClock()))
        journal.start()
        self.questions = Questions(self.writer, plan, journal, self.told.append)

    def reply(self, text: str, by: str = "a terminal") -> None:
        only = asking.open_questions(self.home, run_id())
        named = only[0].question_id if len(only) == 1 and only[0].permission is not None else None
        asking.reply(self.home, run_id(), text, question=named, answered_by=by)

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
    assert run.told == ["steps[1] asks: which file?"]
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
        assert str(caught.value).splitlines()[1:] == ["  q1 (steps[0]): is it 0?", "  q2 (steps[1]): is it 1?"]
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


ASKED = call_as_shown("bash", {"command": "rm x", "big": "y" * 30_000}, "no rule allows `rm x`", ('bash ["rm", "x"]',))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("once", PermissionAnswer(decision="once")),
        ("For this run.", PermissionAnswer(decision="run")),
        ("no, not on a Friday", PermissionAnswer(decision="no", text="not on a Friday")),
        ('with {"command": "ls"}', PermissionAnswer(decision="edit", args={"command": "ls"})),
        ("maybe later", PermissionAnswer(decision="no", text="maybe later")),
    ],
)
def test_a_call_is_asked_about_as_a_person_reads_it_and_answered_from_anywhere(
    home: StoreHome, said: str, answer: PermissionAnswer
) -> None:
    run = ParsedLaunch(home)

    async def ask() -> PermissionAnswer:
        task = asyncio.ensure_future(run.questions.permit(ASKED, step=1, call_id="c1"))
        await sees(lambda: asking.open_questions(home, run_id()))
        (whole,), (shown,) = asking.open_questions(home, run_id()), FileRuns(home).snapshot(run_id()).questions
        assert whole.text.startswith("May it run this?\n$ rm x\n") and "no rule allows `rm x`" in whole.text
        assert whole.permission is not None and shown.permission is not None and whole.call_id == "c1"
        assert whole.permission.parts[1].cut == 10_000 and whole.permission.for_run == ("rm x",)
        assert shown.permission.parts[1].cut == 28_000, "a status is written often"
        run.reply(said)
        return await task

    assert asyncio.run(ask()) == answer


def test_what_is_shown_is_what_would_be_run(home: StoreHome) -> None:
    run = ParsedLaunch(home)
    command = "echo ok \x1b]; rm -rf x; #\x07 \ud800"  # a terminal takes the middle for the title of its window
    call = call_as_shown("bash", {"command": command, "x\u202e": "y"}, "no rule", (f"bash {command}",))

    async def ask() -> None:
        task = asyncio.ensure_future(run.questions.permit(call))
        await sees(lambda: asking.open_questions(home, run_id()))
        (whole,), (shown,) = asking.open_questions(home, run_id()), FileRuns(home).snapshot(run_id()).questions
        for one in (whole.permission, shown.permission):
            assert one is not None and "rm -rf x" in one.parts[0].text and one.parts[0].marked and not one.parts[0].cut
            assert "rm -rf x" in one.for_run[0] and one.parts[1].name == "x⟨U+202E⟩"
        assert "$ echo ok ⟨U+001B⟩]; rm -rf x; #⟨U+0007⟩" in whole.text
        run.reply("no")
        await task

    asyncio.run(ask())


def test_arguments_that_find_no_room_are_said_to_be_there() -> None:
    asked = call_as_shown("mcp__x__y", {f"a{n}": "v" for n in range(20)}, "no rule", ())
    assert len(asked.parts) == 12 and asked.parts[-1].name == "9 more arguments" and asked.parts[-1].cut == 9
    (*_, last) = asked.shortened().parts
    assert last.name == "7 more arguments" and last.cut > 0


def test_a_process_of_a_run_gives_no_permission(home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ParsedLaunch(home)

    async def ask() -> PermissionAnswer:
        task = asyncio.ensure_future(run.questions.permit(ASKED))
        await sees(lambda: asking.open_questions(home, run_id()))
        monkeypatch.setenv(RUN_MARK, f"{run_id()}:token")
        with pytest.raises(RequestError, match=f"belongs to run {run_id()}: an answer is the person's"):
            run.reply("once")
        monkeypatch.delenv(RUN_MARK)
        run.reply("no")
        return await task

    assert asyncio.run(ask()).decision == "no"


@pytest.mark.parametrize("said", ["once", "for this run", 'with {"command": "ls"}'])
def test_a_yes_is_to_the_call_that_was_shown_and_never_to_the_one_that_waits_now(home: StoreHome, said: str) -> None:
    run = ParsedLaunch(home)
    other = call_as_shown("bash", {"command": "rm -rf y"}, "no rule allows it", ())

    async def ask() -> PermissionAnswer:
        seen = await run.questions.permit(ASKED, seconds=0.05)
        assert seen.decision == "unattended"
        (closed,) = (path.stem for path in home.run(run_id()).questions.glob("q1-??????????.json"))
        task = asyncio.ensure_future(run.questions.permit(other))
        await sees(lambda: asking.open_questions(home, run_id()))
        (now,) = asking.open_questions(home, run_id())
        with pytest.raises(RequestError, match=f"--question {now.question_id}") as caught:
            asking.reply(home, run_id(), said, question=None, answered_by="a terminal")
        assert "$ rm -rf y\nAsked because no rule allows it." in str(caught.value), "what it would be a yes to"
        with pytest.raises(RequestError, match=f"{closed} is closed"):
            asking.reply(home, run_id(), said, question=closed, answered_by="a terminal")
        with pytest.raises(RequestError, match="no open question q2"):  # the number of another run's, from its text
            asking.reply(home, run_id(), said, question="q2-0123456789", answered_by="a terminal")
        asking.reply(home, run_id(), "no", question=None, answered_by="a terminal")  # a no harms nobody
        return await task

    assert asyncio.run(ask()).decision == "no"


def test_a_question_whose_text_was_changed_under_its_id_is_none(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def ask() -> None:
        task = asyncio.ensure_future(run.questions.permit(ASKED))
        await sees(lambda: asking.open_questions(home, run_id()))
        (asked,) = asking.open_questions(home, run_id())
        path = home.run(run_id()).questions / f"{asked.question_id}.json"
        path.write_text(path.read_text().replace("rm x", "ls x"))
        assert asking.open_questions(home, run_id()) == []
        with pytest.raises(RequestError, match="no open question"):
            asking.reply(home, run_id(), "once", question=asked.question_id, answered_by="a terminal")
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(ask())


def test_of_several_calls_that_wait_a_bare_yes_means_none_and_each_is_named(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def ask() -> None:
        calls = [call_as_shown("bash", {"command": f"rm {n}"}, "no rule", ()) for n in "ab"]
        tasks = [asyncio.ensure_future(run.questions.permit(one)) for one in calls]
        await sees(lambda: len(asking.open_questions(home, run_id())) == 2)
        with pytest.raises(RequestError, match="Several questions are open") as caught:
            run.reply("once")
        first, second = asking.open_questions(home, run_id())
        assert [
            f"{one.question_id} (steps[0]): May it run this? rm {n}" for one, n in ((first, "a"), (second, "b"))
        ] == [line.strip() for line in str(caught.value).splitlines()[1:]]
        asking.reply(home, run_id(), "once", question=second.question_id, answered_by="a terminal")
        await sees(tasks[1].done)
        assert (await tasks[1]).decision == "once" and not tasks[0].done()
        tasks[0].cancel()
        await asyncio.wait(tasks)

    asyncio.run(ask())


def test_nobody_who_answers_in_time_is_no_yes_and_the_question_is_closed(home: StoreHome) -> None:
    run = ParsedLaunch(home)
    answer = asyncio.run(run.questions.permit(ASKED, seconds=0.05))
    assert answer == PermissionAnswer(decision="unattended", waited_s=0.05)
    with pytest.raises(RequestError, match=r"q1-\w+ is closed"):
        run.reply("once")


def test_the_answer_stop_asks_for_the_stop_of_the_run_and_the_call_is_not_made(home: StoreHome) -> None:
    run = ParsedLaunch(home)

    async def ask() -> None:
        task = asyncio.ensure_future(run.questions.permit(ASKED))
        await sees(lambda: asking.open_questions(home, run_id()))
        run.reply("stop", by="the notebook page")
        await sees(lambda: stops_of(home.run(run_id())))
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(ask())
    (stop,) = stops_of(home.run(run_id()))
    assert (stop.asked_by, stop.reason) == ("the notebook page", "the answer to a permission")


@pytest.mark.parametrize(
    ("of_plan", "of_host", "found"), [(None, None, None), (60.0, None, 60.0), (60.0, 5.0, 5.0), (None, 0.0, "nobody")]
)
def test_it_is_waited_for_as_long_as_plan_and_host_allow(
    home: StoreHome, of_plan: float | None, of_host: float | None, found: object
) -> None:
    run = ParsedLaunch(home)
    origin = run.plan.origin.model_copy(update={"ask_timeout_s": of_host})
    questions = Questions(run.writer, run.plan.model_copy(update={"origin": origin}), run.journal, run.told.append)
    step = make_step(policy=Policy(ceilings=(Ceiling(ask=("bash",), ask_timeout_s=of_plan),)))
    permit = questions.permit_for(step, WorkClock())
    assert (permit.seconds if isinstance(permit, StepPermit) else "nobody") == found
