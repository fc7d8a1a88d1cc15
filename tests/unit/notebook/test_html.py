"""The builder: data is escaped, tags and attributes are closed sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.blocks import Column, Html, Table, clean
from subagents_nb.notebook.page.html import colour, element, pre, safe, to_page
from subagents_nb.notebook.page.lines import cut, scalar


def test_text_is_escaped_and_markup_is_not() -> None:
    assert to_page(element("p", None, "a<b", Html("<p>"), None)) == "<p>a&lt;b<p></p>"
    assert to_page(element("p", {"aria-label": "\"<x>'"})) == '<p aria-label="&quot;&lt;x&gt;&#x27;"></p>'


@pytest.mark.parametrize(
    ("tag", "attributes"), [("script", None), ("p", {"onclick": "x"}), ("p", {"href": "x"}), ("P", None)]
)
def test_a_tag_or_attribute_that_no_card_uses_is_refused(tag: str, attributes: dict[str, str] | None) -> None:
    with pytest.raises(ValueError, match="a card has no"):
        element(tag, attributes)


def test_a_row_of_the_wrong_length_is_a_fault() -> None:
    with pytest.raises(ValueError, match="shorter"):
        to_page(Table([Column("a"), Column("b")], [["1"]]))


def test_the_first_newline_of_a_pre_is_kept_through_a_parser() -> None:
    assert to_page(pre("\nx")).endswith(">\n\nx</pre>")


def test_a_tone_without_a_colour_keeps_the_text_colour() -> None:
    assert colour("") == "currentColor"
    assert colour("bad").startswith("oklch(from currentColor")


def test_a_cut_counts_what_is_left_out() -> None:
    assert cut("abc def", 4) == ("abc", 4)
    assert cut("abc", 3) == ("abc", 0)


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "1.0"), (1 / 3, "0.333333"), (-0.0, "-0.0"), (10**20, "100000000000000000000"), (object(), "(object)")],
)
def test_scalars_are_said_for_reading(value: object, said: str) -> None:
    assert scalar(value) == said


@given(st.text(alphabet=st.characters()))
def test_whatever_is_cleaned_can_be_sent(text: str) -> None:
    clean(text).encode("utf-8")
    assert "<" not in to_page(safe(text))
