"""The card of a chain: stages and steps, what is folded away, how large it may become."""

from __future__ import annotations

from card_page import Page, card_html, card_text
from chain_samples import C, F, P, R, live, over

from subagents_nb.domain.runs.states import RunState
from subagents_nb.notebook.cards.card import MAX_CARD_BYTES


def test_the_stages_stand_between_the_head_and_the_answer() -> None:
    page = Page(card_html(over()))
    text = page.text
    order = [
        "chain · 3 stages",
        "5 of 5 steps",
        "map files",
        "→ found",
        "review each",
        "synthesis",
        "outputs: found , reviews",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.rindex("All is well.") > places[-1]
    assert "Its output is the answer below." in text


def test_a_step_that_failed_is_open_with_its_error_and_a_long_stage_that_went_well_is_folded() -> None:
    shown = card_html(over(6, [C, C, F, C, C, C, C, C]))
    assert "The model gave up." in shown
    assert shown.count('<details open="">') == 1
    assert '<details open="">' not in card_html(over(6))


def test_of_a_chain_that_broke_off_no_step_passes_for_the_answer() -> None:
    broken = over(2, [C, P, F, F], state=RunState.FAILED, error="Step 2: no.", reason="child", answer=None)
    text = Page(card_html(broken)).text
    assert text.count("All is well.") == 1  # with its step
    assert "go on with the rest: %subagent_resume r-06f3k2m9 -- …" in text
    again = over(0, [F, P], state=RunState.FAILED, error="Step 0: no.", reason="model", answer=None)
    assert "%subagent_resume r-06f3k2m9 -- …" in Page(card_html(again)).text


def test_a_partial_chain_has_its_answer_and_says_how_the_rest_is_gone_on_with() -> None:
    text = Page(card_html(over(2, [C, C, F, C], state=RunState.PARTIAL))).text
    assert "the answer" in text and "go on with the rest: %subagent_resume r-06f3k2m9 -- …" in text
    assert "%subagent_" not in Page(card_html(over(2))).text


def test_a_live_chain_has_a_card_too() -> None:
    text = Page(card_html(live())).text
    assert "↻ running 2 pkg/module_0.py" in text
    assert "1 of 5 steps" in text
    assert "◌ pending" in text


def test_a_card_of_64_steps_is_under_five_kilobytes_without_their_texts_and_says_how_many_more() -> None:
    many = over(64, text="")
    assert "… and 42 more complete" in Page(card_html(many)).text
    assert len(card_html(many).encode()) < 5_000


def test_no_text_of_a_step_makes_the_card_larger_than_the_cap() -> None:
    for text in ("<" * 5_000, "漢" * 5_000, "x" * 200_000):
        assert len(card_html(over(64, text=text)).encode()) <= MAX_CARD_BYTES
        assert len(card_text(over(64, text=text))) < 8_000


def test_markup_in_texts_and_names_is_text() -> None:
    assert "<img" not in card_html(over(text="<img src=x onerror=alert(1)>"))


def test_the_plain_twin_has_the_stages_above_the_answer() -> None:
    assert card_text(over(1)).splitlines() == [
        "review-release (chain) complete: All is well.",
        "   0  complete  map files as found",
        "      complete  review each as reviews (for each of found, 1 of 1 step)",
        "     2  complete  pkg/module_0.py",
        "   1  complete  synthesis",
        "",
        "All is well.",
    ]
    assert "running" in card_text(live(1, [C, P, R]))
