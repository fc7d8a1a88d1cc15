"""One line about what became of a request."""

from __future__ import annotations

import pytest
from card_samples import queued, running

from subagents_nb.domain.runs.control import ControlAnswer
from subagents_nb.notebook.cards.receipts import Receipt, drained, retuned, steered


def answer(outcome: str | None) -> ControlAnswer | None:
    fields = {"run_id": "r", "request_id": "x", "outcome": outcome, "answered_at": "now"}
    return ControlAnswer.model_validate(fields) if outcome else None


@pytest.mark.parametrize(
    ("outcome", "follow_up", "said"),
    [
        ("delivered", False, "The agent was told."),
        ("queued", False, "Waiting; the agent is told before its next request."),
        ("queued", True, "Waiting; the agent is told when its turn is over."),
        (None, False, "Waiting; the agent is told before its next request."),
        ("too-late", True, "Too late, it ended first. To go on: %subagent_resume r-06f3k2m9 -- …"),
    ],
)
def test_a_receipt_is_said_in_a_line(outcome: str | None, follow_up: bool, said: str) -> None:
    found = steered(running(), answer(outcome), follow_up=follow_up)
    assert repr(found) == found.text == said
    assert found.outcome == (outcome or "queued")


def test_a_run_that_waits_for_a_place_tells_its_agent_when_it_has_begun() -> None:
    found = steered(queued(), answer("queued"))
    assert found.text == "Waiting; the agent is told when the run has begun, which waits for a free place."


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("accepted", "find: retuned: timeout 1h"),
        ("queued", "find: queued: timeout 1h; the run waits for a free place and begins with that"),
        ("too-late", "find: too-late: nothing was changed, for the run is ending already"),
        (None, "find: queued: timeout 1h; the run is busy and hears of it later"),
    ],
)
def test_limits_are_only_said_to_be_changed_if_they_are(outcome: str | None, said: str) -> None:
    assert repr(retuned("find", answer(outcome), "timeout 1h")) == said


@pytest.mark.parametrize(
    ("outcome", "began", "said"),
    [
        ("accepted", True, "find: draining: it finishes what runs and starts nothing new"),
        ("accepted", False, "find: stopped: it waited for a free place, and never begins now"),
        ("too-late", True, "find: too-late: the run is ending already"),
        (None, True, "find: queued: the run is busy and hears of it later; until then it may start more"),
    ],
)
def test_a_run_is_only_said_to_drain_if_it_does(outcome: str | None, began: bool, said: str) -> None:
    assert repr(drained("find", answer(outcome), began=began)) == said


def test_what_is_quoted_from_a_run_is_one_clean_line() -> None:
    assert repr(Receipt.about("a\nb", "answered", "which\x1b[31m\u202e one?\n" + "x" * 900)) == (
        "a b: answered: which one? " + "x" * 148 + "…"
    )
