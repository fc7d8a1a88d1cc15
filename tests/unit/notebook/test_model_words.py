"""How a card says which model answered and how full its context was."""

from __future__ import annotations

from typing import Any

import pytest
from support import make_plan, make_result

from subagents_nb.blocks import to_text
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.card import card_page
from subagents_nb.notebook.cards.shown import context_words, model_words, who
from subagents_nb.notebook.cards.tables import runs_table


def step(**more: Any) -> StepResult:
    return make_result().steps[0].model_copy(update=more)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "gpt-5", "selected": "openai:gpt-5", "requested": "openai:gpt-5"}, "openai:gpt-5"),
        ({"model": "gpt-5-2026-01-01", "selected": "openai:gpt-5", "requested": "gpt-5"},
         "openai:gpt-5, written gpt-5, answered as gpt-5-2026-01-01"),
        ({"model": "openai:gpt-5", "selected": "openai:gpt-5"}, "openai:gpt-5"),
        ({"model": "of an older version"}, "of an older version"),
    ],
)  # fmt: skip
def test_the_model_that_was_written_chosen_and_answered_is_said_once(fields: dict[str, Any], words: str) -> None:
    assert model_words(step(**fields)) == words


def test_a_share_is_said_where_the_window_is_known() -> None:
    assert context_words(step()) == ""
    assert (
        context_words(step(context_tokens=4_000, context_window=200_000)) == "last request 4,000 of 200,000 tokens (2%)"
    )
    assert context_words(step(context_tokens=12)) == "last request 12 tokens, of a window that nobody here knows"


def test_the_card_says_both_beside_what_the_run_came_to() -> None:
    told = step(model="gpt-5-1", selected="openai:gpt-5", context_tokens=10, context_window=100)
    page = str(card_page(Snapshot(run_id=make_plan().run_id, plan=make_plan(), result=make_result(steps=(told,)))))
    assert "openai:gpt-5, answered as gpt-5-1 · last request 10 of 100 tokens (10%)" in page


def test_one_model_has_one_name_in_cards_lists_and_frames() -> None:
    told = step(model="gpt-5-2026-01-01", selected="openai:gpt-5", requested="gpt-5")
    snapshot = Snapshot(run_id=make_plan().run_id, result=make_result(steps=(told,)))
    assert who(snapshot)[1] == "openai:gpt-5"
    assert str(card_page(snapshot)).count("gpt-5-2026-01-01") == 1  # once, as what answered
    assert "openai:gpt-5" in to_text(runs_table([snapshot])) and "2026" not in to_text(runs_table([snapshot]))
