"""What the live view sends, how often, and what it leaves behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from card_samples import asking, ended, running

from subagents_nb.domain.runs.records import StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import StepState
from subagents_nb.notebook.views.live import CardView, LiveView


class Page:
    """A face that remembers what it was given."""

    def __init__(self) -> None:
        self.traits: list[dict[str, Any]] = []
        self.messages: list[Any] = []
        self.disposed = 0
        self.missing: Callable[[], dict[str, Any]] = dict
        self._held: dict[str, Any] | None = None

    def send(self, content: Any) -> None:
        self.messages.append(content)

    @contextlib.contextmanager
    def hold_sync(self) -> Iterator[None]:
        self._held = {}
        yield
        self.traits.append(self._held)
        self._held = None

    def set_trait(self, name: str, value: Any) -> None:
        if self._held is None:
            self.traits.append({name: value})
        else:
            self._held[name] = value

    def dispose(self) -> None:
        self.disposed += 1

    @property
    def fresh(self) -> list[dict[str, Any]]:
        """What was streamed."""
        return [traits["fresh"] for traits in self.traits if "fresh" in traits]


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def said(text: str, **changes: Any) -> Snapshot:
    step = StepStatus(agent="scout", model="m", state=StepState.RUNNING, tail=text[-4000:], tail_end=len(text))
    return running(steps=(step,), **changes)


def view_of(page: Page, cards: list[Snapshot], first: Snapshot, clock: Clock) -> LiveView:
    return LiveView(page, first, publish_end=cards.append, clock=clock)


def test_new_text_goes_out_with_what_else_changed_in_one_message_and_only_once(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said("abc"), clock)
    clock.now += 1
    view.on_snapshot(said("abcdef"))
    view.on_snapshot(said("abcdef"))
    clock.now += 1
    view.tick()
    assert page.fresh == [{"at": 3, "text": "def"}]
    assert (page.messages, len(page.traits)) == ([], 1)


def test_nothing_is_sent_when_nothing_changed(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said("abc"), clock)
    clock.now += 1
    view.on_snapshot(said("abc"))
    assert (page.traits, page.messages) == ([], [])


def test_at_most_four_updates_a_second_and_the_last_is_not_lost(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said(""), clock)
    text = ""
    for _ in range(100):
        clock.now += 0.01
        text += "x"
        view.on_snapshot(said(text))
        view.tick()
    clock.now += 0.25
    view.tick()
    assert 3 <= len(page.traits) <= 5
    assert "".join(fresh["text"] for fresh in page.fresh) == text


def test_the_whole_tail_is_sent_now_and_then_and_a_page_that_is_loaded_anew_has_it_at_once(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said("a"), clock)
    for number in range(2, 30):
        clock.now += 0.5
        view.on_snapshot(said("a" * number))
    tails = [traits["tail"] for traits in page.traits if "tail" in traits]
    assert 2 <= len(tails) <= 4
    assert page.missing() == {"tail": "a" * 29, "tail_end": 29}


def test_text_that_outran_the_tail_is_sent_whole(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said("a"), clock)
    clock.now += 0.5
    view.on_snapshot(said("b" * 9000))
    assert page.fresh == []
    assert page.traits[-1]["tail_end"] == 9000
    assert len(page.traits[-1]["tail"]) == 4000


def test_a_silent_run_still_beats(clock: Clock) -> None:
    page = Page()
    view = view_of(page, [], said(""), clock)
    for _ in range(11):
        clock.now += 1
        view.tick()
    assert page.traits == [{"beat": 1}, {"beat": 2}]


def test_how_the_launch_came_by_the_run_is_said_anew_as_time_goes_by(clock: Clock) -> None:
    page, first = Page(), said("a")
    view = LiveView(page, first, publish_end=lambda _: None, reused=lambda _: f"{clock.now:.0f} s", clock=clock)
    view.on_snapshot(first)
    assert page.traits == []
    clock.now += 1
    view.on_snapshot(first)
    assert page.traits == [{"reused": "101 s"}]


def test_the_end_is_a_card_and_the_view_stays_with_it_for_a_page_that_never_hears_of_the_card(clock: Clock) -> None:
    page, cards = Page(), []
    view = view_of(page, cards, said("a"), clock)
    last = ended()
    view.on_snapshot(last)
    view.on_snapshot(last)
    view.tick()
    view.leave()
    assert (cards, page.disposed, len(page.traits)) == ([last], 0, 1)
    assert (page.traits[0]["state"], page.traits[0]["version"]) == ("complete", 1)


def test_a_card_that_can_not_be_published_leaves_the_view_with_the_end(clock: Clock) -> None:
    page = Page()

    def refuse(_: Snapshot) -> None:
        raise OSError("the channel is closed")

    view = LiveView(page, said("a"), publish_end=refuse)
    with pytest.raises(OSError, match="closed"):
        view.on_snapshot(ended())
    assert (page.traits[-1]["state"], page.disposed) == ("complete", 0)


def test_the_plain_output_below_a_view_says_anew_how_it_stands_only_if_that_changed(clock: Clock) -> None:
    page, said_there = Page(), []
    first, later = said("a"), asking("Keep it?")
    view = LiveView(page, first, publish_end=lambda _: None, publish_state=said_there.append, clock=clock)
    view.restate()
    view.on_snapshot(later)
    view.restate()
    view.restate()
    assert said_there == [later]


def test_a_card_is_shown_anew_with_each_cell_until_the_end(clock: Clock) -> None:
    cards: list[Snapshot] = []
    view = CardView(cards.append, clock=clock)
    view.restate()
    view.on_snapshot(said("a"))
    view.restate()
    view.restate()
    view.on_snapshot(ended())
    view.restate()
    assert [card.ended for card in cards] == [False, False, True]


def test_leaving_puts_the_card_of_the_last_reading(clock: Clock) -> None:
    page, cards = Page(), []
    first = said("a")
    view_of(page, cards, first, clock).leave()
    assert (cards, page.disposed) == ([first], 1)


def test_a_host_without_widgets_gets_a_card_a_second_and_the_last_at_once(clock: Clock) -> None:
    cards: list[Snapshot] = []
    view = CardView(cards.append, clock=clock)
    for _ in range(30):
        clock.now += 0.1
        view.on_snapshot(said("a"))
        view.tick()
    assert len(cards) in (2, 3)
    last = ended()
    view.on_snapshot(last)
    view.on_snapshot(said("late"))
    view.tick()
    assert cards[-1] == last
    assert cards.count(last) == 1
