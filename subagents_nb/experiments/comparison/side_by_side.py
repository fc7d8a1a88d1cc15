"""Two texts beside one another, line by line, with the words marked in which they differ. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from subagents_nb.plain_text import plain

MAX_LINES = 2000  # of one text; more are left out, and said to be
_AROUND = 2  # lines that are the same, shown before and after those that differ
_LIKE = 0.4  # how like one another two lines must be to stand for the same line, changed
_LONGEST, _MOST_PAIRS = 4_000, 100  # beyond, lines are marked as wholes: comparing grows with the product
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Bit(NamedTuple):
    """Some words of a line; `marked` if the other text lacks them."""

    text: str
    marked: bool


Side = tuple[Bit, ...] | None  # None: the text has no such line


class Row(NamedTuple):
    """A line of each text; `gap` stands for the lines left out before it, which are the same."""

    left: Side
    right: Side
    gap: int = 0


def side_by_side(before: str, after: str) -> Iterator[Row]:
    """Yield where two texts differ, with a few lines around it."""
    old, new = (plain(text).splitlines()[:MAX_LINES] for text in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new)
    seen = 0  # lines of the old text that were shown or skipped
    for group in matcher.get_grouped_opcodes(_AROUND):
        gap = group[0][1] - seen
        for kind, a, a_end, b, b_end in group:
            rows = _same(old[a:a_end]) if kind == "equal" else _changed(old[a:a_end], new[b:b_end])
            for row in rows:
                yield row._replace(gap=gap)
                gap = 0
        seen = group[-1][2]


def _same(lines: Sequence[str]) -> Iterator[Row]:
    for line in lines:
        yield Row((Bit(line, False),), (Bit(line, False),))


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """Put lines beside those that they became, in order; what is like none stands alone."""
    at, few = 0, len(old) * len(new) <= _MOST_PAIRS
    for number, line in enumerate(old):
        ahead = range(at, len(new)) if few else range(max(at, number), min(number + 1, len(new)))
        found = next((n for n in ahead if _are_like(line, new[n])), None)
        if found is None:
            yield Row((Bit(line, True),), None)
            continue
        yield from (Row(None, (Bit(one, True),)) for one in new[at:found])
        yield Row(*_marked(line, new[found]))
        at = found + 1
    yield from (Row(None, (Bit(one, True),)) for one in new[at:])


def _are_like(one: str, other: str) -> bool:
    if max(len(one), len(other)) > _LONGEST:
        return False
    matcher = difflib.SequenceMatcher(None, _words(one), _words(other))
    return matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE and matcher.ratio() >= _LIKE


def _marked(one: str, other: str) -> tuple[Side, Side]:
    old, new = _words(one), _words(other)
    left: list[Bit] = []
    right: list[Bit] = []
    for kind, a, a_end, b, b_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        for side, words in ((left, old[a:a_end]), (right, new[b:b_end])):
            if words:
                side.append(Bit("".join(words), kind != "equal"))
    return tuple(left), tuple(right)


def _words(line: str) -> list[str]:
    return _WORD.findall(line)
