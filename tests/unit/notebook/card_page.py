"""What a browser would make of our HTML, checked: balanced tags, closed sets of tags and attributes, plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from subagents_nb.blocks import to_text
from subagents_nb.notebook.cards.card import card, card_page
from subagents_nb.notebook.cards.diffs import changes
from subagents_nb.notebook.cards.ledgers import acceptance
from subagents_nb.notebook.cards.tables import agents_table, runs_table
from subagents_nb.notebook.page.html import to_page
from subagents_nb.notebook.plans.lists import described
from subagents_nb.notebook.plans.plan_card import plan

TAGS = frozenset({
    "section", "header", "footer", "div", "p", "span", "strong", "em", "code", "pre", "ul", "ol", "li", "table",
    "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "br", "hr", "a", "blockquote", "h3", "h4",
    "h5", "h6", "del",
})  # fmt: skip
ATTRIBUTES = frozenset({"style", "scope", "aria-label", "aria-hidden", "open", "href", "rel"})
_STYLE = re.compile(r"[a-zA-Z0-9\-:;.,%()+* /]*\Z")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Page(HTMLParser):
    """Parses and complains; `text` is what is left with all tags and styles stripped, in reading order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.parts: list[str] = []
        self._open: list[str] = []
        assert not _UNSEEN.search(source)
        source.encode("utf-8")
        self.feed(source)
        self.close()
        assert self._open == [], "tags left open"

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "style":
                assert _STYLE.match(value or ""), value
                assert "url" not in (value or "").lower()
            if name == "href":
                assert tag == "a"
                assert re.match(r"(?:https?://|https?:|mailto:)", value or "", re.IGNORECASE), value
            self.attributes.append((tag, name, value or ""))
        if tag not in {"br", "hr"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("a processing instruction")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("a marked section")


def runs_table_html(*args: Any, **options: Any) -> str:
    return to_page(runs_table(*args, **options))


def runs_table_text(*args: Any, **options: Any) -> str:
    return to_text(runs_table(*args, **options))


def agents_table_html(*args: Any, **options: Any) -> str:
    return to_page(agents_table(*args, **options))


def agents_table_text(*args: Any, **options: Any) -> str:
    return to_text(agents_table(*args, **options))


def plan_html(*args: Any, **options: Any) -> str:
    return to_page(plan(*args, **options))


def plan_text(*args: Any, **options: Any) -> str:
    return to_text(plan(*args, **options))


def ledger_html(*args: Any, **options: Any) -> str:
    return to_page(acceptance(*args, **options))


def ledger_text(*args: Any, **options: Any) -> str:
    return to_text(acceptance(*args, **options))


def patch_html(*args: Any, **options: Any) -> str:
    return to_page(changes(*args, **options))


def patch_text(*args: Any, **options: Any) -> str:
    return to_text(changes(*args, **options))


def preflight_html(*args: Any, **options: Any) -> str:
    return to_page(described(*args, **options))


def preflight_text(*args: Any, **options: Any) -> str:
    return to_text(described(*args, **options))


def card_html(*args: Any) -> str:
    return card_page(*args)


def card_text(*args: Any) -> str:
    return to_text(card(*args))
