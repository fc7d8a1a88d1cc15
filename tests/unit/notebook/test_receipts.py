"""One line about what became of a request."""

from __future__ import annotations

import pytest
from card_samples import running

from subagents_nb.domain.control import ControlAnswer
from subagents_nb.notebook.receipts import Said, steered


@pytest.mark.parametrize(
    ("outcome", "follow_up", "said"),
    [
        ("delivered", False, "The agent was told."),
        ("queued", False, "Waiting; the agent is told before its next request."),
        ("queued", True, "Waiting; the agent is told when its turn is over."),
        (None, False, "Waiting; the agent is told before its next request."),
        ("too-late", True, "Too late, it ended first. To go on: %subagent_resume find-outliers -- …"),
    ],
)
def test_a_receipt_is_said_in_a_line(outcome: str | None, follow_up: bool, said: str) -> None:
    fields = {"run_id": "r", "request_id": "x", "outcome": outcome, "answered_at": "now"}
    receipt = ControlAnswer.model_validate(fields) if outcome else None
    found = steered(running(), receipt, follow_up=follow_up)
    assert repr(found) == found.text == said
    assert found.outcome == (outcome or "queued")


def test_what_is_quoted_from_a_run_is_one_clean_line() -> None:
    assert repr(Said.about("a\nb", "answered", "which\x1b[31m\u202e one?\n" + "x" * 900)) == (
        "a b: answered: which one? " + "x" * 148 + "…"
    )
