"""What a chain's view is sent: what changed, the whole now and then, and one step while its panel is open."""

from __future__ import annotations

from typing import Any

import pytest
from card_samples import running
from chain_samples import C, F, P, R, live, over

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import StepState
from subagents_nb.notebook.cards.graph_feed import MAX_OUTPUT_CHARS, WHOLE_S, GraphFeed, detail, drawn
from subagents_nb.notebook.views.live import LiveView


class Page:
    """A face that remembers what it was given."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.graphs: list[dict[str, Any]] = []

    def send(self, content: Any) -> None:
        self.messages.append(content)

    def set_trait(self, name: str, value: Any) -> None:
        assert name == "graph"
        self.graphs.append(value)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def fed(first: Snapshot, clock: Clock) -> tuple[Page, GraphFeed]:
    page = Page()
    return page, GraphFeed(page, drawn(first), clock)


def test_a_run_of_one_step_has_no_graph() -> None:
    assert drawn(running()) == {}


def test_the_graph_has_the_stages_and_a_row_for_each_step() -> None:
    whole = drawn(live(2))
    assert [stage["title"] for stage in whole["stages"]] == ["map files", "review each", "synthesis"]
    assert whole["stages"][1]["steps"] == [2, 3]
    assert whole["steps"][2] == {
        "n": 2, "name": "pkg/module_0.py", "agent": "reviewer", "state": "running", "from": 2.0, "took": None,
        "doing": "grep", "stopping": False,
    }  # fmt: skip


def test_a_message_carries_only_the_steps_that_changed(clock: Clock) -> None:
    page, feed = fed(live(64), clock)
    feed.show(live(64))
    assert (page.messages, page.graphs) == ([], [])
    feed.show(live(64, [C, P, F, *[R] * 63]))
    (message,) = page.messages
    assert (message["kind"], message["seq"]) == ("graph", 1)
    assert (message["stages"], message["counts"]) == ([[1, "running", "", [1, 64]]], [2, 66])
    assert [row["n"] for row in message["steps"]] == [2]
    assert page.graphs == []


def test_time_alone_changes_nothing(clock: Clock) -> None:
    page, feed = fed(live(3), clock)
    feed.show(live(3, elapsed_s=99.0))
    assert page.messages == []


def test_the_state_of_a_stage_is_a_change_of_its_own(clock: Clock) -> None:
    page, feed = fed(live(1), clock)
    feed.show(live(1, [C, R, C]))
    assert page.messages[0]["stages"] == [[1, "complete", "", [1, 1]], [2, "running", "", [0, 1]]]


def test_a_step_that_the_map_has_no_room_for_is_counted(clock: Clock) -> None:
    page, feed = fed(live(600, [C, P, *[R] * 600]), clock)
    feed.show(live(600, [C, P, *[R] * 599, C]))
    (message,) = page.messages
    assert (message["steps"], message["counts"]) == ([], [2, 602])
    assert message["stages"] == [[1, "running", "", [1, 600]]]


def test_new_steps_come_as_a_whole(clock: Clock) -> None:
    page, feed = fed(live(0, [R, P]), clock)
    feed.show(live(3))
    assert page.messages == []
    assert [len(whole["steps"]) for whole in page.graphs] == [5]
    assert page.graphs[0]["seq"] == 1


def test_the_whole_is_renewed_for_a_page_that_is_loaded_again(clock: Clock) -> None:
    page, feed = fed(live(3), clock)
    feed.show(live(3, [C, P, C, R, R]))
    clock.now += WHOLE_S - 1
    feed.renew()
    assert page.graphs == []
    clock.now += 1
    feed.renew()
    assert [whole["seq"] for whole in page.graphs] == [1]
    assert page.graphs[0]["steps"][2]["state"] == "complete"
    clock.now += WHOLE_S
    feed.renew()
    assert len(page.graphs) == 1


def test_an_open_step_is_told_about_with_what_is_new_of_its_text(clock: Clock) -> None:
    page, feed = fed(live(2), clock)
    feed.show(live(2))
    assert page.messages == []
    first = live(2)
    assert first.status is not None
    feed.watch(2, detail(first.status.steps[2]))
    step = first.status.steps[2].model_copy(update={"tail": "Looking at it. More.", "tail_end": 46})
    steps = (*first.status.steps[:2], step, first.status.steps[3])
    feed.show(live(2, steps=steps))
    (message,) = [one for one in page.messages if one["kind"] == "step"]
    assert (message["n"], message["at"], message["fresh"]) == (2, 40, " More.")
    feed.show(live(2, steps=steps))
    assert len([one for one in page.messages if one["kind"] == "step"]) == 1
    outran = step.model_copy(update={"tail": "x" * 4000, "tail_end": 9000})
    feed.show(live(2, steps=(*steps[:2], outran, steps[3])))
    assert (page.messages[-1]["tail"], page.messages[-1]["tail_end"]) == ("x" * 4000, 9000)
    feed.watch(None)
    feed.show(live(2))
    assert page.messages[-1]["kind"] == "step"
    assert page.messages[-1].get("tail_end") == 9000


def test_what_an_ended_step_came_to_is_bounded_and_clean() -> None:
    result = over(1).result
    assert result is not None
    told = detail(result.steps[2], "\x1b[31m" + "x" * (MAX_OUTPUT_CHARS + 7))
    assert (len(told["output"]), told["more"]) == (MAX_OUTPUT_CHARS, 7)
    assert "tail" not in told


def test_a_view_feeds_the_graph_at_its_own_pace_and_never_as_a_trait_each_time(clock: Clock) -> None:
    class Face(Page):
        def hold_sync(self) -> Any:
            import contextlib

            return contextlib.nullcontext()

        def set_trait(self, name: str, value: Any) -> None:
            if name == "graph":
                super().set_trait(name, value)

        def dispose(self) -> None: ...

    face = Face()
    view = LiveView(face, live(8), publish_end=lambda _: None, clock=clock)
    for n in range(20):
        clock.now += 0.05
        states: list[StepState] = [C, P, *[C if m <= n // 3 else R for m in range(8)]]
        view.on_snapshot(live(8, states))
        view.tick()
    assert 1 < len(face.messages) <= 5
    assert face.graphs == []
