"""The one place where HTML is put together: elements from closed sets of tags and attributes, every text escaped.

The pieces carry inline style only, and every colour is derived from the host's own text colour. JupyterLab sets no
`color-scheme`, so `light-dark()` would answer "light" under its dark theme; a relative colour is right in any theme,
and an old browser that does not know it shows plain text. With all styles stripped the tags must still read well.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from subagents_nb.domain import words

TAGS = frozenset({
    "section", "header", "footer", "div", "p", "span", "strong", "code", "pre", "ul", "li", "table", "caption", "thead",
    "tbody", "tr", "th", "td", "details", "summary",
})  # fmt: skip
ATTRIBUTES = frozenset({"style", "class", "scope", "aria-label", "aria-hidden", "open"})

SOFT = "opacity:.7"
QUIET = "margin:0;font-size:12px;opacity:.7"
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


class Html(str):
    """Markup that was built here or came out of the sanitizer; any other text is escaped."""

    __slots__ = ()


class Column(NamedTuple):
    """One column of a table; numbers stand on the right, what is tight does not wrap."""

    title: str
    numeric: bool = False
    tight: bool = False


Child = Html | str | None


def colour(tone: str) -> str:
    """Return the colour of a tone in any theme, or the host's own text colour for a tone without one."""
    hue = _HUES.get(tone)
    return f"oklch(from currentColor calc(.42 + .38*l) .15 {hue})" if hue else "currentColor"


def clean(text: str) -> str:
    """Return untrusted text without escapes, control and direction characters and halves of surrogate pairs."""
    return words.plain(text).encode("utf-8", "replace").decode("utf-8")


def line(text: str, limit: int = 160) -> str:
    """Return untrusted text as one clean line of at most `limit` characters."""
    return words.one_line(clean(text), limit)


def cut(text: str, limit: int) -> tuple[str, int]:
    """Return at most `limit` characters of a text, and how many were left out."""
    return (text, 0) if len(text) <= limit else (text[:limit].rstrip(), len(text) - len(text[:limit].rstrip()))


def plural(number: int, noun: str) -> str:
    """Say a count with its noun: `1 row`, `1,240 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def scalar(value: object, limit: int = 160) -> str:
    """Say a JSON scalar as one line; floats with at most six digits, which is for reading and not for computing."""
    if isinstance(value, str):
        return line(value, limit)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        shown = repr(value)
        return shown if len(shown) <= 12 else f"{value:.6g}"
    if isinstance(value, int):
        # Python refuses to write out an integer of more than some thousand digits.
        return line(str(value), limit) if value.bit_length() <= 1024 else f"an integer of {value.bit_length():,} bits"
    return f"({type(value).__name__})"


def safe(*children: Child) -> Html:
    """Join children: markup as it is, text escaped, None left out."""
    return Html("".join(c if isinstance(c, Html) else html.escape(clean(c)) for c in children if c is not None))


def element(tag: str, attributes: Mapping[str, str] | None = None, *children: Child) -> Html:
    """Build one element.

    Raises:
        ValueError: the tag or an attribute is none that the cards use.
    """
    given = attributes or {}
    if tag not in TAGS or not ATTRIBUTES.issuperset(given):
        raise ValueError(f"a card has no <{tag}> with {sorted(given)}")
    opening = "".join([tag, *(f' {name}="{html.escape(clean(value))}"' for name, value in given.items())])
    return Html(f"<{opening}>{safe(*children)}</{tag}>")


def styled(tag: str, style: str, *children: Child) -> Html:
    """Build one element with a style of ours."""
    return element(tag, {"style": style} if style else None, *children)


def code(text: str) -> Html:
    """Show something to type or a short literal."""
    return styled("code", CODE, text)


def pre(text: str) -> Html:
    """Show lines as they are; long ones wrap. A parser drops the first newline of a `pre`, so one is added for it."""
    return styled("pre", _PRE, "\n" + text if text.startswith("\n") else text)


def say(tone: str, *paragraphs: Child) -> Html:
    """Show what must not be overlooked: a bar in the tone's colour, the first paragraph full, the others soft."""
    shown = [p for p in paragraphs if p]
    parts = [styled("p", f"margin:{'4px' if i else '0'} 0 0{';' + SOFT if i else ''}", p) for i, p in enumerate(shown)]
    return styled("div", f"border-left:3px solid {colour(tone)};padding:2px 0 2px 12px", *parts)


def bar(left: Child, right: Child = None, *, foot: bool = False) -> Html:
    """Build a head or a foot: one thing on the left, one on the right, two lines when styles are stripped."""
    ends = [element("div", None, left), styled("div", _RIGHT, right) if right else None]
    return styled("footer", _FOOT, *ends) if foot else styled("header", _HEAD, *ends)


def frame(label: str, head: Html, body: Sequence[Child], foot: Child = None) -> Html:
    """Build the one quiet frame that every card has."""
    inside = [b for b in body if b]
    middle = styled("div", _BODY, *inside) if inside else None
    return element("section", {"aria-label": label, "style": _FRAME}, head, middle, foot)


def table(columns: Sequence[Column], rows: Sequence[Sequence[Child]], *, caption: str = "", unseen: str = "") -> Html:
    """Build a table with a heading for each column and a caption, which may be for screen readers alone."""
    top = ";vertical-align:top" if len(rows) <= _FEW_ROWS else ""
    head = [
        element("th", {"scope": "col", "style": f"{_aligned(c)}{_CELL};font-weight:500;{SOFT}"}, c.title)
        for c in columns
    ]
    lines = [
        styled("tr", _ROW, *(styled("td", f"{_aligned(c)}{_CELL}{top}", v) for c, v in zip(columns, row, strict=True)))
        for row in rows
    ]
    above = _caption(caption) or (styled("caption", _UNSEEN, unseen) if unseen else None)
    return _table(above, styled("thead", "border:0", styled("tr", "background:none", *head)), lines)


def pairs(rows: Iterable[tuple[str, Child]], *, caption: str = "") -> Html:
    """Build a table of two columns: names, which head their rows, and what they stand for."""
    name = f"text-align:left;vertical-align:top;white-space:nowrap;width:1%;{_CELL};font-weight:500;{SOFT}"
    lines = [
        styled(
            "tr",
            _ROW if index or caption else "background:none",
            element("th", {"scope": "row", "style": name}, title),
            styled("td", f"text-align:left;vertical-align:top;overflow-wrap:anywhere;{_CELL}", value),
        )
        for index, (title, value) in enumerate(rows)
    ]
    return _table(_caption(caption), None, lines)


def _caption(text: str) -> Html | None:
    return styled("caption", _CAPTION, text) if text else None


def _table(caption: Html | None, head: Html | None, lines: Sequence[Html]) -> Html:
    return styled("table", _TABLE, caption, head, element("tbody", None, *lines))


def _aligned(column: Column) -> str:
    return f"text-align:{'right' if column.numeric else 'left'};{'white-space:nowrap;' if column.tight else ''}"
