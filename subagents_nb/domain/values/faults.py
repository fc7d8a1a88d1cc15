"""How a value that was refused is told: what pydantic found, what was written, and which name may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHOWN, _LONGEST_NAME = 60, 80


def said_of(fault: Mapping[str, Any]) -> str:
    """Return what pydantic says of one fault, without the words it puts in front of a validator's own."""
    return str(fault["msg"]).removeprefix("Value error, ")


def snake(name: str) -> str:
    """Return a name in snake_case, however it is spelt."""
    return _HUMP.sub("_", name.strip()[:_LONGEST_NAME]).replace("-", "_").lower()


def shown(value: object) -> str:
    """Show a refused value in one short line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


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
    return f"; did you mean {near}?" if near else f"; {otherwise} {', '.join(known)}"
