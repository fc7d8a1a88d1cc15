"""What the page may send, and what it is told."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from card_samples import running
from chain_samples import live, over
from support import until

from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import RequestError
from subagents_nb.notebook.views.page_requests import MAX_CHARS, PageRequest, PageRequests, understood

Told = queue.SimpleQueue[dict[str, Any]]


class Handle:
    """A run's handle that writes down what was asked of it, and answers as it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.fault: Exception | None = None
        self.outcome = "delivered"
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def status(self) -> Snapshot:
        return running()

    def stop(self, *, step: int | None, asked_by: str) -> bool:
        self._note("stop", asked_by, *([] if step is None else [step]))
        return True

    def answer(self, text: str, *, question: str, asked_by: str) -> None:
        self._note("answer", text, question, asked_by)

    def steer(self, text: str, *, step: int | None, asked_by: str) -> ControlAnswer:
        self._note("steer", text, asked_by, *([] if step is None else [step]))
        fields = {"run_id": "r", "request_id": "x", "outcome": self.outcome, "answered_at": "now"}
        return ControlAnswer.model_validate(fields)

    def _note(self, *what: Any) -> None:
        self.asked.append(what)
        assert self.may_answer.wait(10)
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"kind": "stop"}, PageRequest("stop")),
        ({"kind": "stop", "text": 7, "code": "1/0"}, PageRequest("stop")),
        ({"kind": "steer", "text": " look "}, PageRequest("steer", " look ")),
        ({"kind": "answer", "question": "q1", "text": "yes"}, PageRequest("answer", "yes", "q1")),
        ({"kind": "stop", "step": 3}, PageRequest("stop", step=3)),
        ({"kind": "steer", "step": 0, "text": "x"}, PageRequest("steer", "x", step=0)),
        ({"kind": "open", "step": 63}, PageRequest("open", step=63)),
        ({"kind": "close"}, PageRequest("close")),
        ({"kind": "steer", "text": "x" * MAX_CHARS}, PageRequest("steer", "x" * MAX_CHARS)),
    ],
)
def test_what_the_page_may_ask_for(content: dict[str, Any], found: PageRequest) -> None:
    assert understood(content) == found


@pytest.mark.parametrize(
    "content",
    [
        None, "stop", 7, [], [{"kind": "stop"}], {}, {"kind": "exec", "text": "1/0"}, {"kind": ["stop"]},
        {"kind": "retune", "text": "x"}, {"kind": "steer"}, {"kind": "steer", "text": " \n"},
        {"kind": "steer", "text": 3},
        {"kind": "steer", "text": "x" * (MAX_CHARS + 1)}, {"kind": "answer", "text": "yes"},
        {"kind": "answer", "text": "yes", "question": "../q1"}, {"kind": "answer", "text": "yes", "question": "q1\n"},
        {"kind": "answer", "text": "yes", "question": 1}, {"kind": "answer", "text": "", "question": "q1"},
        {"kind": "answer", "text": "yes", "question": "q" * 81},
        {"kind": "stop", "step": -1}, {"kind": "stop", "step": True}, {"kind": "stop", "step": "3"},
        {"kind": "stop", "step": 1.0}, {"kind": "stop", "step": 10**9}, {"kind": "stop", "step": [1]},
        {"kind": "steer", "step": "0", "text": "x"}, {"kind": "open"}, {"kind": "open", "step": None},
    ],
)  # fmt: skip
def test_anything_else_is_passed_over(content: object) -> None:
    told: Told = queue.SimpleQueue()
    handle = Handle()
    PageRequests(handle).on_message(content, told.put)  # type: ignore[arg-type]
    assert (handle.asked, told.empty()) == ([], True)


def ask(handle: Handle, content: object) -> Told:
    told: Told = queue.SimpleQueue()
    PageRequests(handle).on_message(content, told.put)  # type: ignore[arg-type]
    return told


def test_an_answer_is_acknowledged_for_its_question() -> None:
    handle = Handle()
    told = ask(handle, {"kind": "answer", "question": "q2", "text": "yes"})
    assert told.get(timeout=10) == {
        "kind": "ack", "to": "answer", "question": "q2", "text": "Answered.", "ok": True, "more": False,
    }  # fmt: skip
    assert handle.asked == [("answer", "yes", "q2", "the notebook page")]


@pytest.mark.parametrize(
    ("outcome", "ok", "said"),
    [
        ("delivered", True, "The agent was told."),
        ("queued", True, "Waiting; the agent is told before its next request."),
        ("too-late", False, "Too late, it ended first. To go on: %subagent_resume r-06f3k2m9 -- …"),
    ],
)
def test_a_steer_is_acknowledged_twice(outcome: str, ok: bool, said: str) -> None:
    handle = Handle()
    handle.outcome = outcome
    told = ask(handle, {"kind": "steer", "text": "look"})
    first, last = told.get(timeout=10), told.get(timeout=10)
    assert (first["more"], first["text"]) == (True, "Sent; waiting for the receipt.")
    assert (last["more"], last["ok"], last["text"]) == (False, ok, said)


def test_a_refusal_is_told_in_its_words_and_a_fault_of_ours_without_them() -> None:
    handle = Handle()
    handle.fault = RequestError("Somebody answered this question a moment ago.")
    told = ask(handle, {"kind": "answer", "question": "q1", "text": "yes"}).get(timeout=10)
    assert (told["ok"], told["text"]) == (False, "Somebody answered this question a moment ago.")
    handle.fault = OSError("/home/ada/secret: no space")
    told = ask(handle, {"kind": "stop"}).get(timeout=10)
    assert (told["to"], told["ok"]) == ("stop", False)
    assert "ada" not in told["text"]


def test_the_kernel_is_not_held_up_and_not_flooded() -> None:
    handle = Handle()
    handle.may_answer.clear()
    told: Told = queue.SimpleQueue()
    requests = PageRequests(handle)  # type: ignore[arg-type]
    for _ in range(5):
        requests.on_message({"kind": "stop"}, told.put)
    assert told.get(timeout=10)["text"] == "Too many requests at once; try again."
    assert len(handle.asked) <= 4
    handle.may_answer.set()
    assert [told.get(timeout=10)["ok"] for _ in range(4)] == [True] * 4
    until(
        lambda: not [t for t in threading.enumerate() if t.name == "subagents-nb-page"], what="the end of the threads"
    )
    requests.on_message({"kind": "stop"}, told.put)
    assert told.get(timeout=10)["ok"] is True


class ChainHandle(Handle):
    """A chain's handle: two steps, of which one has ended."""

    name = "review-release"

    @property
    def steps(self) -> Any:
        ended, working = over(0).result, live(1).status
        assert ended is not None
        assert working is not None
        return [
            SimpleNamespace(status=ended.steps[0], text="The whole text."),
            SimpleNamespace(status=working.steps[2], text="so far"),
        ]


def test_what_is_meant_for_one_step_is_asked_of_that_step_and_acknowledged_for_it() -> None:
    handle = Handle()
    assert ask(handle, {"kind": "stop", "step": 3}).get(timeout=10)["step"] == 3
    assert ask(handle, {"kind": "steer", "step": 0, "text": "look"}).get(timeout=10)["step"] == 0
    until(lambda: len(handle.asked) == 2)
    assert sorted(handle.asked) == [("steer", "look", "the notebook page", 0), ("stop", "the notebook page", 3)]


def test_opening_a_step_tells_what_there_is_of_it_and_watches_one_that_works() -> None:
    watched: list[Any] = []
    for step, expected in ((0, None), (1, 1)):
        told: Told = queue.SimpleQueue()
        requests = PageRequests(ChainHandle())  # type: ignore[arg-type]
        requests.on_watch = lambda number, _told: watched.append(number)
        requests.on_message({"kind": "open", "step": step}, told.put)
        said = told.get(timeout=10)
        assert said["kind"] == "step"
        assert watched[-1] == expected
        assert said.get("output") == ("The whole text." if step == 0 else None)
        assert said.get("tail") == (None if step == 0 else "Looking at pkg/module_0.py.")


def test_a_step_that_is_not_there_is_said() -> None:
    said = ask(ChainHandle(), {"kind": "open", "step": 7}).get(timeout=10)
    assert (said["ok"], said["step"], said["text"]) == (False, 7, "review-release has no steps[7].")


def test_what_comes_twice_is_carried_out_once_and_answered_twice() -> None:
    handle, told = Handle(), Told()
    requests = PageRequests(handle)  # type: ignore[arg-type]
    asked = {"kind": "answer", "question": "q1", "text": "yes", "id": "abc1"}
    requests.on_message(asked, told.put)
    first = told.get(timeout=10)
    requests.on_message(asked, told.put)
    assert told.get(timeout=10) == first
    assert (first["id"], len(handle.asked)) == ("abc1", 1)
    requests.on_message({**asked, "id": "abc2"}, told.put)
    told.get(timeout=10)
    assert len(handle.asked) == 2
    for odd in ("", 7, "x" * 99, "A B"):
        assert understood({"kind": "stop", "id": odd}) == PageRequest("stop")


def test_the_card_is_given_only_of_a_run_that_has_ended() -> None:
    handle, told = Handle(), Told()
    PageRequests(handle, card=lambda: {"text/html": "card"}).on_message({"kind": "card"}, told.put)  # type: ignore[arg-type]
    assert told.get(timeout=10)["kind"] == "ack"
    ended_one = SimpleNamespace(status=over())
    PageRequests(ended_one, card=lambda: {"text/html": "card"}).on_message({"kind": "card"}, told.put)  # type: ignore[arg-type]
    assert told.get(timeout=10) == {"kind": "card", "data": {"text/html": "card"}}
