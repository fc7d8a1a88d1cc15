"""The one thing to do next."""

from __future__ import annotations

from typing import Any

import pytest
from card_samples import USAGE, answered, asking, ended, lost, planned, queued, running, unreadable

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.end_notes import ending, next_action

COSTLY = USAGE.model_copy(update={"cost_usd": 0.123})


@pytest.mark.parametrize(
    ("snapshot", "has_session", "command"),
    [
        (running(), None, "%subagent_attach r-06f3k2m9"),
        (queued(), None, "%subagent_attach r-06f3k2m9"),
        (answered("x"), True, "%subagent_attach r-06f3k2m9"),
        (asking(), None, "%subagent_answer r-06f3k2m9 -- …"),
        (ended("paused", reason="interrupted"), True, "%subagent_resume r-06f3k2m9 -- …"),
        (ended("failed", reason="provider"), True, "%subagent_resume r-06f3k2m9 -- …"),
        (ended("failed", reason="provider"), None, "%subagent_resume r-06f3k2m9 -- …"),
        (ended("failed", reason="provider"), False, "%subagent_again r-06f3k2m9"),
        (ended("failed", reason="timeout"), True, "%subagent_resume r-06f3k2m9 --timeout 60m -- …"),
        (
            ended("failed", reason="provider", elapsed_s=1801.0),
            True,
            "%subagent_resume r-06f3k2m9 --timeout 60m -- …",
        ),
        (
            ended("failed", reason="budget", usage=USAGE.model_copy(update={"requests": 50})),
            True,
            "%subagent_resume r-06f3k2m9 --max-requests 50 -- …",
        ),
        (
            ended("failed", reason="budget", usage_budget={"tokens": {"hard": 2}}),
            True,
            f"%subagent_resume r-06f3k2m9 --usage-budget {USAGE.input_tokens + USAGE.output_tokens} -- …",
        ),
        (
            ended("failed", reason="budget", usage_budget={"cost_usd": {"hard": 0.1}}, usage=COSTLY),
            True,
            "%subagent_resume r-06f3k2m9 --usage-budget '$0.12' -- …",
        ),
        (ended("partial", reason="no-answer"), True, "%subagent_resume r-06f3k2m9 -- …"),
        (ended("stopped", reason="stopped"), True, "%subagent_again r-06f3k2m9"),
        (ended("rejected", reason="setup"), True, "%subagent_again r-06f3k2m9"),
        (lost(), False, "%subagent_again r-06f3k2m9"),
        (lost(), True, "%subagent_resume r-06f3k2m9 -- …"),
        (unreadable(), None, "%subagent_attach r-06f3k2m9"),
        (ended("failed", reason="provider", name="two words"), True, "%subagent_resume r-06f3k2m9 -- …"),
        (ended("failed", reason="provider", name="scout-k2m9"), True, "%subagent_resume scout-k2m9 -- …"),
    ],
)
def test_there_is_one_command_that_goes_on(snapshot: Snapshot, has_session: bool | None, command: str) -> None:
    assert next_action(snapshot, has_session=has_session)[1] == command


def test_a_run_that_did_nothing_is_not_gone_on_from_unless_somebody_saw_its_session() -> None:
    nothing: dict[str, Any] = {"reason": "startup", "usage": USAGE.model_copy(update={"requests": 0})}
    assert next_action(ended("failed", **nothing))[0] == "start over:"
    assert next_action(ended("failed", **nothing), has_session=True)[0] == "go on from here:"


def test_a_deadline_is_never_doubled_beyond_what_may_be_asked_for() -> None:
    week = 7 * 24 * 3600.0
    assert "--timeout 10080m" in next_action(ended("failed", reason="timeout", timeout_s=week), has_session=True)[1]


def test_an_interrupt_needs_no_second_sentence_about_who_it_was() -> None:
    said = ending(ended("paused", reason="interrupted", actor="person"))
    assert said == "It was interrupted, and its session is kept: it can go on."


def test_a_plan_alone_is_a_run_that_is_queued_and_has_no_ending() -> None:
    assert ending(planned(Snapshot(run_id="r-06f3k2m9"))) == ""
