"""What is shown of a subject, described once: a tree of few kinds, which the page's writer and the text's writer print.

A part of the tree is data and nothing else; texts in it are untrusted, and it is the writers who make them harmless.
The writer for pages is notebook/page/html.py. The one for text is here: terminals need it without a notebook.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from subagents_nb.plain_text import plain

_INDENT = "  "


class Html(str):
    """Markup that our writer made or that came out of the sanitizer; only a page has it."""

    __slots__ = ()


class Element(NamedTuple):
    """A part with the meaning that its tag has in HTML: a paragraph, an item of a list, a fold, a frame."""

    tag: str
    attributes: Mapping[str, str]
    children: tuple[Child, ...]


class Group(NamedTuple):
    """Parts that stand in one line."""

    children: tuple[Child, ...]


class Either(NamedTuple):
    """What a page and a text have in the same place, where they do not have the same."""

    page: Child
    text: Child = None


class Column(NamedTuple):
    """One column of a table; numbers stand on the right, what is tight does not wrap."""

    title: str
    numeric: bool = False
    tight: bool = False


class Table(NamedTuple):
    """Rows under a heading for each column; the name `unseen` is for screen readers alone."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Child]]
    caption: str = ""
    unseen: str = ""


class DescriptionList(NamedTuple):
    """Names, and what they stand for."""

    rows: Sequence[tuple[str, Child]]
    caption: str = ""


Child: TypeAlias = Element | Group | Either | Table | DescriptionList | str | None


def clean(text: str) -> str:
    """Return untrusted text without escapes, control and direction characters and halves of surrogate pairs."""
    return plain(text).encode("utf-8", "replace").decode("utf-8")


def page_only(*children: Child) -> Either:
    """Show parts on pages only."""
    shown = tuple(child for child in children if child)
    return Either(Group(shown) if shown else None)


def to_text(*parts: Child) -> str:
    """Write parts as plain text that is safe in a terminal."""
    return "\n".join(line for part in parts for line in _lines(part))


def _lines(part: Child) -> Iterator[str]:
    match part:
        case None | "" | Html():
            return
        case Either():
            yield from _lines(part.text)
        case Table():
            yield from ["", f"{clean(part.caption)}:"] if part.caption else []
            yield from _aligned(part)
        case DescriptionList():
            yield from ["", clean(part.caption)] if part.caption else []
            width = max((len(name) for name, _ in part.rows), default=0)
            yield from (f"{_INDENT}{clean(name).ljust(width)}  {_inline(value)}" for name, value in part.rows)
        case Element(tag="section" | "header" | "footer" | "div" | "ul"):
            for child in part.children:
                yield from _lines(child)
        case Element(tag="details"):
            summary, *inside = part.children
            yield from ["", f"{_inline(summary)}:"]
            yield from (f"{_INDENT}{line}" for child in inside for line in _lines(child))
        case Element(tag="li"):
            yield f"{_INDENT}{_inline(part)}"
        case _:
            if (text := _inline(part)) or isinstance(part, Element):
                yield from text.split("\n")


def _inline(part: Child) -> str:
    match part:
        case None | Html():
            return ""
        case str():
            return clean(part)
        case Either():
            return _inline(part.text)
        case Element() | Group():
            return "".join(map(_inline, part.children))
        case _:
            return "\n".join(_lines(part))


def _aligned(table: Table) -> Iterator[str]:
    """Return a heading and the rows, padded; what the last column has stays unpadded."""
    every = [[clean(c.title) for c in table.columns], *([_inline(cell) for cell in row] for row in table.rows)]
    widths = [max(map(_width, cells)) for cells in zip(*every, strict=True)]
    for row in every:
        padded = []
        for cell, width, column in zip(row, widths, table.columns, strict=True):
            room = " " * (width - _width(cell))
            padded.append(room + cell if column.numeric else cell + room)
        yield "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Return how many columns a terminal gives a text: two for wide characters, none for combining ones."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
