"""Markdown from a model, as HTML that can do nothing: parsed without raw HTML, then held to a short allow-list."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from subagents_nb.blocks import Html, clean
from subagents_nb.notebook.page.lines import cut

MAX_CHARS = 20_000  # the parser takes quadratic time on some inputs: this many `![` take a third of a second
_MAX_CELLS = 4_000  # and a few hundred short lines under a wide heading can ask for 65,536 table cells
_TAGS = {
    "p", "br", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "h3", "h4", "h5", "h6", "table", "thead",
    "tbody", "tr", "th", "td", "a", "hr", "del",
}  # fmt: skip
_SHOWN_AS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6", "s": "del"}


def safe_markdown(text: str, *, limit: int = MAX_CHARS) -> Html:
    """Render untrusted Markdown.

    What is left: headings that can't be mistaken for the notebook's own, lists, tables, code, quotes, and links that
    name http, https or mailto. Images are named, not loaded. Text beyond `limit` characters is cut, with a word on it.
    """
    kept, left_out = cut(clean(text), min(limit, MAX_CHARS))
    parser = _PARSER if _table_cells(kept) <= _MAX_CELLS else _WITHOUT_TABLES
    tokens = parser.parse(kept)
    _retag(tokens)
    shown = nh3.clean(
        parser.renderer.render(tokens, parser.options, {}),
        tags=_TAGS,
        attributes={"*": set(), "a": {"href"}},  # "*" as well: the default lets `title` and `lang` through
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer",
    )
    # Once more: a character reference such as `&#x202e;` became a character in between.
    shown = clean(shown.replace("\x1b", "")).strip()
    return Html(f"{shown}\n<p>… cut: {left_out:,} more characters</p>" if left_out else shown)


def _table_cells(text: str) -> int:
    """Return how many table cells a text can ask for: the parser fills up short rows to the width of the heading."""
    lines = text.splitlines()
    return len(lines) * max((line.count("|") for line in lines), default=0)


def _retag(tokens: Sequence[Token]) -> None:
    for token in tokens:
        token.tag = _SHOWN_AS.get(token.tag, token.tag)
        _retag(token.children or ())


def _image(_renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return html.escape(f"[image: {tokens[index].content}]")


def _parser(*extensions: str) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable([*extensions, "strikethrough"])
    parser.add_render_rule("image", _image)
    return parser


_PARSER = _parser("table")
_WITHOUT_TABLES = _parser()
