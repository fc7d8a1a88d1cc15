"""The line on a card about a launch that found a run."""

from __future__ import annotations

from types import SimpleNamespace

from card_page import Page, card_html, card_text
from support import make_result, make_status, run_id

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.notebook.cards.card import CardContext
from subagents_nb.notebook.cards.reused import reused_line, would_find

ENDED = Snapshot(run_id=run_id(), result=make_result())


def found(**more: object) -> SimpleNamespace:
    return SimpleNamespace(**{"reused": True, "found_live": False, "asked_name": "", "found_note": ""} | more)


def test_a_name_that_a_found_run_does_not_take_is_told() -> None:
    assert reused_line(found(asked_name="other"), ENDED).endswith(f"; its name is {ENDED.name}, not other")
    assert "its name" not in reused_line(found(asked_name=ENDED.name), ENDED)


def test_what_was_compared_is_told_of_a_run_that_had_ended() -> None:
    assert reused_line(found(found_note="compared: 2 files"), ENDED).endswith("; compared: 2 files")


def test_only_a_launch_that_found_its_run_says_so() -> None:
    assert reused_line(SimpleNamespace(reused=False), ENDED) == ""
    said = reused_line(found(), ENDED)
    assert said.startswith("reused: nothing was spent (ran ") and "its name" not in said
    live, at_work = Snapshot(run_id=run_id(), status=make_status()), "reused: it was at work already (launched "
    assert reused_line(found(), live).startswith(at_work)
    assert reused_line(found(found_live=True), ENDED).startswith(at_work)  # it spent meanwhile


def test_the_card_says_it_and_so_does_the_text() -> None:
    beside = CardContext(reused="reused: nothing was spent (ran 2 hours ago)")
    assert beside.reused in card_html(ENDED, beside)
    assert beside.reused in card_text(ENDED, beside)


def test_the_card_of_a_new_run_says_why_no_other_stood_in() -> None:
    note = "Launched anew: data/<b>.csv changed since scout-ab12."
    anew = Snapshot(run_id=run_id(), result=make_result(notes=("something", note)))
    assert note in card_text(anew)
    assert Page(card_html(anew)).text.count(note) == 1


def test_a_card_that_was_found_does_not_say_besides_that_it_was_launched_anew_once() -> None:
    notes = ("model chosen: the first key", "Launched anew: a.csv changed since scout-ab12.")
    found = Snapshot(run_id=run_id(), result=make_result(notes=notes))
    for card in (
        card_html(found, CardContext(reused="reused: it")),
        card_text(found, CardContext(reused="reused: it")),
    ):
        assert "reused: it" in card
        assert "anew" not in card
    assert "model chosen: the first key" in card_html(found)


def test_no_number_of_notes_hides_why_no_other_stood_in() -> None:
    notes = (*(f"note {number}" for number in range(9)), "Launched anew: a.csv changed since scout-ab12.")
    assert "a.csv changed since scout-ab12." in card_html(Snapshot(run_id=run_id(), result=make_result(notes=notes)))


def test_a_dry_run_says_what_it_would_find_or_why_not() -> None:
    assert "It would find r-1" in would_find(SimpleNamespace(reuses="r-1", reuse_note=""))
    assert would_find(SimpleNamespace(reuses=None, reuse_note="a changed.")) == "It would be launched anew: a changed."
    assert would_find(SimpleNamespace(reuses=None, reuse_note="")) == ""
