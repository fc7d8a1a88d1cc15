"""Markdown: what is left of it, what is not, and how long it may take."""

from __future__ import annotations

import time

import pytest
from card_page import Page
from hypothesis import given, settings
from hypothesis import strategies as st

from subagents_nb.notebook.page.markdown import MAX_CHARS, safe_markdown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a **b** _c_ `d`", "<p>a <strong>b</strong> <em>c</em> <code>d</code></p>"),
        ("# one", "<h3>one</h3>"),
        ("## two", "<h4>two</h4>"),
        ("###### six", "<h6>six</h6>"),
        ("~~gone~~", "<p><del>gone</del></p>"),
        ('![a "chart"](https://e.example/x.png)', '<p>[image: a "chart"]</p>'),
        ("[x](https://e.example 'title')", '<p><a href="https://e.example" rel="noopener noreferrer">x</a></p>'),
        (
            "<mailto:a@e.example>",
            '<p><a href="mailto:a@e.example" rel="noopener noreferrer">mailto:a@e.example</a></p>',
        ),
        ("https://e.example", "<p>https://e.example</p>"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"),
        ("```python\na < b\n```", "<pre><code>a &lt; b\n</code></pre>"),
        ("", ""),
    ],
)
def test_markdown_becomes_few_tags_without_attributes(source: str, shown: str) -> None:
    assert safe_markdown(source) == shown


@pytest.mark.parametrize("target", ["notes.md", "../up", "/root", "//host", "#part", "?q", "ftp://h", "tel:1"])
def test_a_link_that_is_not_to_the_web_or_to_mail_leads_nowhere(target: str) -> None:
    assert not [a for a in Page(safe_markdown(f"[x]({target})")).attributes if a[1] == "href"]


def test_a_table_is_a_table() -> None:
    assert Page(safe_markdown("| a | b |\n|---|--:|\n| 1 | 2 |")).text == "a b 1 2"


def test_a_character_reference_can_not_bring_back_what_was_stripped() -> None:
    assert "\u202e" not in safe_markdown("&#x202e;x &#8203;y")


def test_what_is_too_long_is_cut_and_says_how_much() -> None:
    shown = safe_markdown("x" * (MAX_CHARS + 1_234))
    assert shown.endswith("<p>… cut: 1,234 more characters</p>")


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "*",
        "|",
        "![",
        "`",
        "<",
        ">",
        "- ",
        "*a_",
        "[a](",
        "[a\n",
        "|a",
        "a|\n",
        "_a__",
        "&",
        "\\",
        "~",
        "1. ",
        "[^",
        "<a ",
        "\t",
    ],
)
def test_hostile_repetition_takes_less_than_a_second(unit: str) -> None:
    source = unit * (200_000 // len(unit))
    began = time.process_time()
    safe_markdown(source)
    assert time.process_time() - began < 1


def test_a_short_text_can_not_ask_for_a_huge_table() -> None:
    began = time.process_time()
    shown = safe_markdown("|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n" + "|\n" * 8_000)
    assert time.process_time() - began < 1
    assert len(shown) < 100_000


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="<>[]()!*_`~|-#&;:\"'\\ \n\tahx1.=/") | st.text())
def test_any_text_renders_to_balanced_known_tags(text: str) -> None:
    Page(safe_markdown(text))
