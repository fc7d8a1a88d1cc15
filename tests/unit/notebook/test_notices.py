"""What is told of runs that ended or ask unseen, when, and why the rest is not told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from card_samples import RUN_ID, asking, ended, lost, running
from support import until

from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching import Run
from subagents_nb.notebook.views.notices import Notices, is_ripe
from subagents_nb.store import StoreHome


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Expect = Callable[..., str]


@pytest.fixture
def notices(clock: Clock) -> Notices:
    return Notices(follow=lambda *_: lambda: None, clock=clock)


@pytest.fixture
def expect(notices: Notices, tmp_path: Path) -> Expect:
    """Launch nothing: a run that is expected, and of which only the test says what becomes of it."""

    def one(run_id: str = RUN_ID) -> str:
        notices.expect(Run(StoreHome(tmp_path), run_id))
        return run_id

    return one


def of(snapshot: Snapshot, run_id: str) -> Snapshot:
    return snapshot.model_copy(update={"run_id": run_id})


@pytest.mark.parametrize(
    ("ends", "ripe"),
    [
        ([], False),
        ([(9.99, True)], False),
        ([(9.85, True)], True),
        ([(9.99, False)], True),
        ([(9.5, True), (9.99, True)], False),
        ([(9.0, True), (9.3, True), (9.6, True), (9.99, True)], True),
        ([(9.95, True), (9.99, False)], True),
    ],
)
def test_successes_are_told_together_within_a_second_and_failures_at_once(
    ends: list[tuple[float, bool]], ripe: bool
) -> None:
    assert is_ripe(ends, 10.0) is ripe


def test_an_end_that_nobody_saw_is_told_once(notices: Notices, clock: Clock, expect: Expect) -> None:
    expect()
    assert not notices.take()
    notices.on_snapshot(running())
    notices.on_snapshot(ended())
    assert not notices.take(), "another may follow"
    clock.now += 0.2
    assert [s.state for s in notices.take().ended] == ["complete"]
    assert not notices.take()
    assert notices.suppressed == {RUN_ID: "already-told"}


def test_ends_are_told_in_their_order_and_a_failure_takes_the_others_along(
    notices: Notices, clock: Clock, expect: Expect
) -> None:
    for number, snapshot in ((3, ended()), (1, ended()), (2, lost())):
        notices.on_snapshot(of(snapshot, expect(f"r-0000000{number}")))
        clock.now += 0.01
    assert [s.run_id[-1] for s in notices.take().ended] == ["3", "1", "2"]


@pytest.mark.parametrize("state", ["failed", "paused", "partial", "stopped"])
def test_whatever_went_not_well_is_told_at_once(notices: Notices, expect: Expect, state: str) -> None:
    expect()
    notices.on_snapshot(ended(state))
    assert notices.take().ended


def test_what_the_person_saw_is_not_told_and_the_reason_is_kept(notices: Notices, clock: Clock, expect: Expect) -> None:
    shown, waited = expect("r-00000001"), expect("r-00000002")
    notices.shown(shown)
    notices.on_snapshot(of(lost(), shown))
    notices.on_snapshot(of(lost(), waited))
    notices.known_to_person(waited)
    clock.now += 5
    assert not notices.take()
    assert notices.suppressed == {shown: "shown-live", waited: "asked-for"}


def test_a_run_of_another_kernel_is_none_of_ours(notices: Notices) -> None:
    notices.shown("r-00000001")
    notices.known_to_person("r-00000002")
    notices.on_snapshot(lost())
    assert not notices.take()
    assert notices.suppressed == {}


@pytest.mark.parametrize(("enabled", "person", "why"), [(False, True, "turned-off"), (True, False, "no-person")])
def test_where_nothing_is_to_be_told_nothing_is_told_later_either(
    notices: Notices, expect: Expect, enabled: bool, person: bool, why: str
) -> None:
    expect()
    notices.on_snapshot(lost())
    notices.enabled = enabled
    assert not notices.take(person=person)
    notices.enabled = True
    assert not notices.take()
    assert notices.suppressed == {RUN_ID: why}


def test_a_run_that_asks_is_told_once_a_question_and_its_end_too(notices: Notices, expect: Expect) -> None:
    expect()
    notices.on_snapshot(asking("Go on?"))
    assert [s.questions[0].text for s in notices.take().asking] == ["Go on?"]
    assert not notices.take()
    notices.on_snapshot(asking("Go on?", "And then?"))
    assert len(notices.take().asking) == 1
    notices.on_snapshot(running())
    assert not notices.take()
    notices.on_snapshot(lost())
    assert notices.take().ended


def test_a_question_that_was_answered_meanwhile_is_not_told(notices: Notices, expect: Expect) -> None:
    expect()
    notices.on_snapshot(asking("Go on?"))
    notices.on_snapshot(running())
    assert not notices.take()


def test_a_question_on_the_page_is_not_told(notices: Notices, expect: Expect) -> None:
    notices.shown(expect())
    notices.on_snapshot(asking("Go on?"))
    assert not notices.take()


def test_the_persons_function_is_called_for_every_end_one_after_the_other(notices: Notices, expect: Expect) -> None:
    called: list[tuple[str, str]] = []
    done = threading.Event()

    def on_end(run: Run) -> None:
        called.append((run.id, threading.current_thread().name))
        if len(called) == 3:
            done.set()

    notices.hook = on_end
    ids = [expect(f"r-0000000{number}") for number in range(3)]
    notices.shown(ids[0])
    for run_id in ids:
        notices.on_snapshot(of(ended(), run_id))
        notices.on_snapshot(of(ended(), run_id))
    assert done.wait(10)
    assert called == [(run_id, "subagents-nb-on-end") for run_id in ids]


def test_a_failing_function_is_told_of_once_and_the_next_end_is_heard_all_the_same(
    notices: Notices, clock: Clock, expect: Expect
) -> None:
    called: list[str] = []

    def on_end(run: Run) -> None:
        called.append(run.id)
        raise KeyError("no such webhook")

    notices.hook = on_end
    for number in range(3):
        notices.on_snapshot(of(ended(), expect(f"r-0000000{number}")))
    until(lambda: len(called) == 3)
    clock.now += 1
    until(lambda: not [t for t in threading.enumerate() if t.name == "subagents-nb-on-end"])
    news = notices.take()
    assert (news.fault, len(news.ended)) == ("Your on_end function failed: KeyError: 'no such webhook'", 3)
    assert not notices.take()


def test_the_persons_other_function_is_called_for_questions_and_for_what_may_need_a_look(
    notices: Notices, expect: Expect
) -> None:
    called: list[str] = []
    notices.attention_hook = lambda run: called.append(run.id)

    def heard(snapshot: Snapshot, times: int) -> None:
        notices.on_snapshot(snapshot)
        until(lambda: not [t for t in threading.enumerate() if t.name == "subagents-nb-on-end"])
        assert len(called) == times

    expect()
    heard(running(), 0)
    heard(asking("Go on?"), 1)
    heard(asking("Go on?"), 1)
    heard(asking("Go on?", "And then?"), 2)
    silent = running(attention=Attention(kind="idle", text="Nothing was heard for 60 s.", since_s=0.0))
    heard(silent, 3)
    heard(silent, 3)
    heard(running(), 3)
    heard(silent, 4)
    heard(lost(), 4)


def test_closing_forgets_everything(notices: Notices, expect: Expect) -> None:
    expect()
    notices.on_snapshot(lost())
    notices.hook, notices.enabled = print, False
    notices.close()
    assert not notices.take()
    assert (notices.enabled, notices.hook, notices.suppressed) == (True, None, {})
    assert notices.drain(0.0) == []


def test_a_run_that_was_launched_from_python_is_expected_once_and_waiting_for_it_is_asking(
    notices: Notices, clock: Clock, tmp_path: Path
) -> None:
    notices.launched(StoreHome(tmp_path), RUN_ID)
    typed = Run(StoreHome(tmp_path), RUN_ID)
    notices.expect(typed)
    assert [expected.run for expected in notices._runs.values()] == [typed]
    notices.awaited(RUN_ID)
    notices.on_snapshot(ended())
    clock.now += 2
    assert not notices.take()
    assert notices.suppressed == {RUN_ID: "asked-for"}
    notices.expect(typed)
    assert not notices._runs, "what was told or asked for is not told anew"
