"""The one place where HTML is put together: elements from closed sets of tags and attributes, every text escaped.

What is shown is described first, see blocks.py; `to_page` writes such a description, and nothing else makes HTML.

The pieces carry inline style only, and every colour is derived from the host's own text colour. JupyterLab sets no
`color-scheme`, so `light-dark()` would answer "light" under its dark theme; a relative colour is right in any theme,
and an old browser that does not know it shows plain text. With all styles stripped the tags must still read well.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from subagents_nb.blocks import Child, Column, DescriptionList, Either, Element, Group, Html, Table, clean

_Room = TypeVar("_Room")

TAGS = frozenset({
    "section", "header", "footer", "div", "p", "span", "strong", "code", "pre", "ul", "li", "table", "caption", "thead",
    "tbody", "tr", "th", "td", "details", "summary",
})  # fmt: skip
ATTRIBUTES = frozenset({"style", "class", "scope", "aria-label", "aria-hidden", "open"})

SOFT = "opacity:.7"
_QUIET = "margin:0;font-size:12px;opacity:.7"
CODE = "font:12px var(--jp-code-font-family,ui-monospace,monospace);background:none;padding:0"
_SUNK = "background:color-mix(in srgb,currentColor 6%,transparent);border-radius:4px;padding:8px 12px"
_PRE = (
    "font:12px/1.45 var(--jp-code-font-family,ui-monospace,monospace);margin:0;white-space:pre-wrap;"
    f"overflow-wrap:anywhere;{_SUNK}"
)
_FRAME = (
    "--l:color-mix(in srgb,currentColor 17%,transparent);max-width:880px;border:1px solid var(--l);border-radius:6px;"
    "overflow:hidden;font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums"
)
_BAR = "display:flex;flex-wrap:wrap;gap:0 16px;align-items:baseline"
_HEAD = f"{_BAR};padding:10px 14px"
_LINE = "border-top:1px solid var(--l)"
_BODY = f"display:grid;grid-template-columns:minmax(0,1fr);gap:10px;padding:12px 14px;overflow-x:auto;{_LINE}"
_FOOT = f"{_BAR};padding:8px 14px;font-size:12px;{_LINE}"
_RIGHT = "margin-left:auto"
# Lab aligns cells to the right, stripes the rows and spreads the columns evenly; a table of words wants none of it.
_TABLE = "table-layout:auto;width:100%;margin:0;border-collapse:collapse;font-size:12px"
_CAPTION = "text-align:left;padding:0 0 4px;font-weight:600"
# For a table whose frame says it already; a screen reader still gets a name.
_UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
_ROW = f"{_LINE};background:none"
_CELL = "padding:5px 10px 5px 0"
_FEW_ROWS = 8

# Hue and colourfulness of the states that have a colour; the lightness follows the host's text.
_HUES = {"run": "255", "ok": "150", "bad": "25", "warn": "70"}


def colour(tone: str) -> str:
    """Return the colour of a tone in any theme, or the host's own text colour for a tone without one."""
    hue = _HUES.get(tone)
    return f"oklch(from currentColor calc(.42 + .38*l) .15 {hue})" if hue else "currentColor"


def to_page(part: Child) -> Html:
    """Write a description as HTML: markup as it is, text escaped, None left out."""
    match part:
        case None:
            return Html("")
        case Html():
            return part
        case str():
            return Html(html.escape(clean(part)))
        case Either():
            return to_page(part.page)
        case Group():
            return Html("".join(map(to_page, part.children)))
        case Table():
            return to_page(_table_element(part))
        case DescriptionList():
            return to_page(_facts_element(part))
    names = (f' {name}="{html.escape(clean(value))}"' for name, value in part.attributes.items())
    inside = "".join(map(to_page, part.children))
    if part.tag == "pre" and inside.startswith("\n"):
        inside = "\n" + inside  # a parser drops the first newline of a `pre`
    return Html(f"<{part.tag}{''.join(names)}>{inside}</{part.tag}>")


def bounded_page(described: Callable[[_Room], Child], rooms: Sequence[_Room], most_bytes: int) -> Html:
    """Write what is described for the largest of some rooms with which it has at most so many bytes, else the last."""
    page = Html("")
    for room in rooms:
        page = to_page(described(room))
        if len(page.encode()) <= most_bytes:
            break
    return page


def safe(*children: Child) -> Group:
    """Put parts in one line."""
    return Group(children)


def element(tag: str, attributes: Mapping[str, str] | None = None, *children: Child) -> Element:
    """Build one element.

    Raises:
        ValueError: the tag or an attribute is none that the cards use.
    """
    attrs = attributes or {}
    if tag not in TAGS or not ATTRIBUTES.issuperset(attrs):
        raise ValueError(f"a card has no <{tag}> with {sorted(attrs)}")
    return Element(tag, attrs, children)


def styled(tag: str, style: str, *children: Child) -> Element:
    """Build one element with a style of ours."""
    return element(tag, {"style": style} if style else None, *children)


def code(text: Child) -> Element:
    """Show something to type or a short literal."""
    return styled("code", CODE, text)


def pre(text: str) -> Element:
    """Show lines as they are; long ones wrap."""
    return styled("pre", _PRE, text)


def say(tone: str, *paragraphs: Child) -> Element:
    """Show what must not be overlooked: a bar in the tone's colour, the first paragraph full, the others soft."""
    shown = [p for p in paragraphs if p]
    parts = [styled("p", f"margin:{'4px' if i else '0'} 0 0{';' + SOFT if i else ''}", p) for i, p in enumerate(shown)]
    return styled("div", f"border-left:3px solid {colour(tone)};padding:2px 0 2px 12px", *parts)


def soft(*parts: Child) -> Element:
    """Say something less loudly than what it stands beside."""
    return styled("span", SOFT, *parts)


def note(*parts: Child) -> Element | None:
    """Say something quietly, if there is something to say."""
    return styled("p", _QUIET, *parts) if any(parts) else None


def bar(left: Child, right: Child = None, *, foot: bool = False) -> Element:
    """Build a head or a foot: one thing on the left, one on the right, two lines when styles are stripped."""
    ends = [element("div", None, left), styled("div", _RIGHT, right) if right else None]
    return styled("footer", _FOOT, *ends) if foot else styled("header", _HEAD, *ends)


def frame(label: str, head: Child, body: Sequence[Child], foot: Child = None) -> Element:
    """Build the one quiet frame that every card has."""
    inside = [b for b in body if b]
    on_page = any(not isinstance(b, Either) or b.page for b in inside)
    middle = styled("div", _BODY, *inside) if on_page else Either(None, element("div", None, *inside))
    return element("section", {"aria-label": label, "style": _FRAME}, head, middle, foot)


def _table_element(shown: Table) -> Element:
    top = ";vertical-align:top" if len(shown.rows) <= _FEW_ROWS else ""
    head = [
        element("th", {"scope": "col", "style": f"{_aligned(c)}{_CELL};font-weight:500;{SOFT}"}, c.title)
        for c in shown.columns
    ]
    cells = [f"{_aligned(c)}{_CELL}{top}" for c in shown.columns]
    lines = [
        styled("tr", _ROW, *(styled("td", style, value) for style, value in zip(cells, row, strict=True)))
        for row in shown.rows
    ]
    above = _caption(shown.caption) or (styled("caption", _UNSEEN, shown.unseen) if shown.unseen else None)
    return _table(above, styled("thead", "border:0", styled("tr", "background:none", *head)), lines)


def _facts_element(facts: DescriptionList) -> Element:
    name = f"text-align:left;vertical-align:top;white-space:nowrap;width:1%;{_CELL};font-weight:500;{SOFT}"
    lines = [
        styled(
            "tr",
            _ROW if index or facts.caption else "background:none",
            element("th", {"scope": "row", "style": name}, title),
            styled("td", f"text-align:left;vertical-align:top;overflow-wrap:anywhere;{_CELL}", value),
        )
        for index, (title, value) in enumerate(facts.rows)
    ]
    return _table(_caption(facts.caption), None, lines)


def _caption(text: str) -> Element | None:
    return styled("caption", _CAPTION, text) if text else None


def _table(caption: Element | None, head: Element | None, lines: Sequence[Element]) -> Element:
    return styled("table", _TABLE, caption, head, element("tbody", None, *lines))


def _aligned(column: Column) -> str:
    return f"text-align:{'right' if column.numeric else 'left'};{'white-space:nowrap;' if column.tight else ''}"
