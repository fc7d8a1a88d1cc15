"""Untrusted Markdown shows what it says and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from subagents_nb.domain.texts.markdown_cells import escaped, fenced, inline

HOSTILE = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)> b",
    "```\n<b>in</b>\n```\n<b>out</b>",
    "~~~\n```\n<b>x</b>\n",
    "> ```\n<img src=x>\n```",
    "- a\n\n      ```\n<img src=x>\n",
    "`<b>`` <img src=x> `",
    "[x](javascript:alert(1)) [y]\n\n[y]: javascript:alert(2)",
    "[x](java&#115;cript:alert(1)) [x](java&amp;#115;cript:alert(1)) [x]( javascript:alert(1))",
    "![a](https://example.org/pixel.png) ![b][c]\n\n[c]: https://example.org/p",
    "<javascript:alert(1)>",
    "```\n" + "`" * 30 + "\n<b>",
    "$$\n```\n<b>\n```\n$$",
    "````x\n```\n<img src=x>\n````` \n<img src=y>",
    "$$ a\n~~~\n$$ <img src=x>\n~~~",
    "a $$\n\n$$ b\n~~~\n$$ <img src=x>\n~~~",
    "a\n\n\\\\[ b\n~~~\n\\\\] <img src=x>\n~~~",
    "a\n\n\\begin{a} b\n~~~\n\\end{a} <img src=x>\n~~~",
]


def tags(html: str) -> set[str]:
    return {name.lower() for name in re.findall(r"<\s*/?\s*([A-Za-z][A-Za-z0-9]*)", html)}


def harmless(text: str) -> None:
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    for html in (MarkdownIt("commonmark", {"html": True}).render(text), markdown2html_mistune(text)):
        assert not tags(html) & {"script", "img", "iframe", "b", "svg", "object", "style"}, html
        assert not re.search(r"(?:href|src)\s*=\s*[\"']?\s*(?:javascript|data|vbscript):", html, re.IGNORECASE), html


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_of_the_text_comes_alive_in_either_reader(text: str) -> None:
    harmless(escaped(text))
    harmless(f"before\n\n{fenced(text)}\n\nafter")
    harmless(f"- {inline(text)}")


FENCES = ["```", "~~~", "````", "`", "$$", "\\", "\\[", "\\]", "\\begin{a}", "\\end{a}"]
PLACES = ["\n", "\n\n", "    ", "  ", "> ", "- ", "a", "x\n"]
MARKUP = ["<b>", "<img src=x>", "![", "](", "]:", ")", "javascript:x", "&#106;", "&amp;"]
PIECES = st.sampled_from(FENCES + PLACES + MARKUP)


@given(st.lists(PIECES, max_size=24).map("".join))
def test_no_mixture_of_fences_and_tags_does_either(text: str) -> None:
    harmless(escaped(text))


def test_code_blocks_keep_their_content_letter_by_letter() -> None:
    assert escaped("Look:\n```python\nif a < b & c:\n    pass\n```\ndone") == (
        "Look:\n\n```python\nif a < b & c:\n    pass\n```\n\ndone"
    )


def test_formulas_stay_where_no_code_stands_beside_them() -> None:
    assert escaped("It is\n\n$$\nx^2\n$$") == "It is\n\n$$\nx^2\n$$"


def test_prose_keeps_its_markdown() -> None:
    assert escaped("# Title\n\n- **a** [link](https://example.org)") == "# Title\n\n- **a** [link](https://example.org)"


def test_a_fence_is_longer_than_what_it_holds() -> None:
    assert fenced("a ```` b", "text") == "`````text\na ```` b\n`````"


def test_control_and_direction_characters_go() -> None:
    assert fenced("a\x1b[31mb\u202e\x00") == "```\nab\n```"
