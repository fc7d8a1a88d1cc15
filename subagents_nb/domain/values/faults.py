"""How a name or value that was refused is told: what was written, and which name may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from subagents_nb.plain_text import shortened

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHOWN, _LONGEST_NAME, _MOST_NAMES = 60, 80, 40


def snake(name: str) -> str:
    """Return a name in snake_case, however it is spelt."""
    return _HUMP.sub("_", name.strip()[:_LONGEST_NAME]).replace("-", "_").lower()


def shown(value: object) -> str:
    """Show a refused value in one short line."""
    return shortened(repr(value), _SHOWN)


def similar(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the names that may be meant, in their own spelling, the nearest first."""
    names = {one.replace("-", "_"): one for one in sorted(known)}
    near = difflib.get_close_matches(name[:_LONGEST_NAME].replace("-", "_"), names, n=most, cutoff=0.5)
    return tuple(names[one] for one in near)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the one name that may be meant, or nothing."""
    return next(iter(similar(name, known, 1)), "")


def meant(name: str, known: Iterable[str], otherwise: str = "there are") -> str:
    """Return the end of a sentence that refuses a name: which may be meant, or which there are."""
    known = tuple(known)
    near = nearest(name, known)
    if near:
        return f"; did you mean {near}?"
    return f"; {otherwise} {', '.join(known)}" if len(known) <= _MOST_NAMES else ""
