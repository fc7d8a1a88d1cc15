"""When a run points at itself: its words stay fresh, and a question that finds no room waits for it."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from support import WHEN, make_plan, make_recovery, make_status, make_step, run_id, until

from subagents_nb.domain.agents.attention import Attention, Thresholds
from subagents_nb.domain.plans.plan import GroupItem
from subagents_nb.domain.runs.events import TextStreamed, ToolEnded, ToolStarted
from subagents_nb.domain.runs.questions import Reply
from subagents_nb.domain.runs.records import first_step
from subagents_nb.domain.runs.states import RunState
from subagents_nb.runner.journal.journal import Journal
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.runner.steps.open_questions import Questions
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.files.disk import Disk

THRESHOLDS = Thresholds(tool_s=100.0)


class Tight(Disk):
    """Has no room for questions while it is told so."""

    full: int | None = None
    refused = 0

    def link(self, temp: Path, path: Path) -> None:
        if self.full is not None and path.parent.name == "questions":
            self.refused += 1
            raise OSError(self.full, os.strerror(self.full))
        super().link(temp, path)


class Life:
    """A run with a clock of its own."""

    def __init__(self, home: StoreHome, *, steps: int = 1) -> None:
        self.now = 0.0
        self.disk = Tight()
        self.home = home
        indices = tuple(range(steps))
        group = (GroupItem(steps=indices, concurrency=steps),) if steps > 1 else ()
        plan = make_plan(steps=tuple(make_step(index=index) for index in indices), items=group)
        create_run(home, plan, make_recovery())
        self.writer = RunWriter(home.run(run_id()), disk=self.disk)
        first = make_status(state=RunState.QUEUED, steps=tuple(first_step(step) for step in plan.steps))
        self.writer.status(first, milestone=True)
        self.journal = Journal(self.writer, plan, first, WorkClock(lambda: self.now))
        for index in indices:
            self.journal.step_began(index)
        self.journal.start()
        self.patience = dict.fromkeys(indices, THRESHOLDS)

    def at(self, now: float, *, waiting: Collection[int] = ()) -> Attention | None:
        self.now = now
        found = self.journal.consider(self.patience.__getitem__, waiting)
        self.journal.flush()
        return found

    def edit(self, index: int, path: str, *, ok: bool = False) -> None:
        self.now += 1
        self.journal.report(index, ToolStarted(call_id="e", name="edit", args=path))
        self.journal.report(index, ToolEnded("e", ok=ok, seconds=0.1, preview=""))

    def shown(self) -> Attention | None:
        return FileRuns(self.home).snapshot(run_id()).attention


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(open_home(tmp_path / "store"))


def text_of(found: Attention | None) -> str:
    return found.text if found is not None else ""


def test_how_long_a_tool_works_is_told_anew_at_most_every_ten_seconds(life: Life) -> None:
    life.journal.report(0, ToolStarted(call_id="c", name="bash", args="{}"))
    assert "for 100 s" in text_of(life.at(100))
    assert life.at(105) is None, "it is no news"
    assert "for 100 s" in text_of(life.shown())
    assert life.at(110) is None
    assert "for 110 s" in text_of(life.shown())
    life.at(119.9)
    assert "for 110 s" in text_of(life.shown())
    life.at(190)
    assert "for 3 min" in text_of(life.shown())


def test_a_run_whose_tool_works_says_oftener_that_it_lives(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def written_after(seconds: float) -> bool:
        life.journal.flush()
        before = FileRuns(life.home).snapshot(run_id()).status
        clock[0] += seconds
        life.journal.flush()
        return FileRuns(life.home).snapshot(run_id()).status != before

    clock[0] += 60
    assert not written_after(1.1) and not written_after(3.0)
    assert written_after(5.1)
    life.journal.report(0, ToolStarted(call_id="c", name="bash", args="{}"))
    assert written_after(1.1) and not written_after(0.5)


@pytest.fixture
def group(tmp_path: Path) -> Life:
    """A run of three steps beside one another."""
    return Life(open_home(tmp_path / "store"), steps=3)


def test_one_failed_edit_of_each_of_three_steps_is_no_reason_to_look(group: Life) -> None:
    for index in range(3):
        group.edit(index, "a.py")
    assert group.at(5) is None
    group.edit(1, "b.py")
    group.edit(1, "c.py")
    assert text_of(group.at(10)) == "steps[1] (scout): The last 3 edits failed."


def test_edits_of_one_file_that_fail_between_good_ones_are_a_reason_to_look(life: Life) -> None:
    for number in range(3):
        assert life.at(life.now) is None
        life.edit(0, "a.py")
        life.edit(0, f"b{number}.py", ok=True)
    assert text_of(life.at(life.now)) == "The last 3 edits of a.py failed."
    life.edit(0, "a.py", ok=True)
    assert life.at(life.now) is None
    assert life.shown() is None


def test_a_silent_step_is_not_hidden_by_those_that_talk_or_use_tools(group: Life) -> None:
    group.now = 50
    group.journal.report(0, TextStreamed("a"))
    group.journal.report(2, ToolStarted(call_id="c", name="bash", args="{}"))
    assert group.at(59) is None
    assert text_of(group.at(61)) == "steps[1] (scout): Nothing was heard for 61 s."


def test_a_step_that_thinks_hard_is_left_alone_and_the_one_beside_it_is_not(group: Life) -> None:
    group.patience[1] = THRESHOLDS.scaled("max")
    for index in (0, 2):
        group.now = 50
        group.journal.report(index, TextStreamed("a"))
    assert group.at(100) is None
    assert text_of(group.at(115)).startswith("steps[0] (scout)")


def test_a_step_that_waits_for_a_rate_limit_is_not_silent(group: Life) -> None:
    for now in (30, 60, 90, 120):
        group.now = now
        for index in (0, 2):
            group.journal.report(index, TextStreamed("a"))
        assert group.at(now, waiting={1} if now <= 90 else ()) is None
    for index in (0, 2):
        group.journal.report(index, TextStreamed("a"))
    assert group.at(149) is None
    assert text_of(group.at(151)) == "steps[1] (scout): Nothing was heard for 61 s."


def test_a_question_that_finds_no_room_waits_for_it_and_the_run_says_so(life: Life) -> None:
    told: list[str] = []
    life.disk.full = errno.ENOSPC
    questions = Questions(life.writer, make_plan(), life.journal, told.append)

    async def ask() -> str:
        asking = asyncio.ensure_future(questions.ask("which file?"))
        await sees(lambda: life.disk.refused >= 2)
        found = life.at(1)
        assert found is not None and found.kind == "disk-full" and told == []
        life.disk.full = None
        await sees(lambda: bool(told))
        assert (answer := life.at(2)) is not None and answer.kind == "question"
        RunWriter(life.writer.paths).mail.reply(
            Reply(run_id=run_id(), question_id="q1", text="both", answered_at=WHEN, answered_by="Python")
        )
        return await asking

    assert asyncio.run(ask()) == "both"
    assert told == ["asks: which file?"]
    until(lambda: life.at(3) is None and life.shown() is None, what="the end of the remark")


async def sees(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_question_that_can_never_be_stored_fails_at_once(life: Life) -> None:
    life.disk.full = errno.EROFS
    questions = Questions(life.writer, make_plan(), life.journal, lambda _: None)
    with pytest.raises(OSError, match="Read-only"):
        asyncio.run(questions.ask("which file?"))
    assert not life.journal.disk_full


def test_a_run_that_ends_while_its_question_waits_for_room_leaves_no_remark(life: Life) -> None:
    life.disk.full = errno.EDQUOT
    questions = Questions(life.writer, make_plan(), life.journal, lambda _: None)

    async def leave() -> None:
        asking = asyncio.ensure_future(questions.ask("which file?"))
        await sees(lambda: life.disk.refused >= 1)
        asking.cancel()
        await asyncio.wait({asking})

    asyncio.run(leave())
    assert not life.journal.disk_full and life.disk.refused < 3
