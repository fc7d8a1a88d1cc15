"""What people write, read alike wherever they write it: on a line, in a cell, in a file, in Python."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from subagents_nb.domain.values.faults import nearest


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is a number, not true or false")
    return value


# Python takes True for 1; whoever wrote it meant no number.
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_flag)]
Real: TypeAlias = Annotated[float, BeforeValidator(_no_flag)]
Time: TypeAlias = Annotated[float | str, BeforeValidator(_no_flag)]  # seconds, or as `words.parse_duration` reads it

_NUMBER = r"-?(?:[0-9][0-9,_]*(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_AMOUNT = re.compile(rf"(\$)?\s*({_NUMBER})\s*([kmg]?)\s*(\$|usd|dollars?|tokens?)?", re.ASCII | re.IGNORECASE)


def parse_amount(text: str) -> tuple[float, str]:
    """Read an amount as people write it: `200000`, `200k`, `5k tokens`, `$2`, `5$`, `2 USD`; return it and its unit.

    The unit is `tokens`, `usd`, or nothing where none is written.

    Raises:
        ValueError: it is none.
    """
    match = _AMOUNT.fullmatch(text.strip())
    unit = match[4].lower() if match is not None and match[4] else ""
    if match is None or (match[1] and unit[:1] in ("t", "$")):
        raise ValueError(f"{text!r} is no amount; write tokens (200000, 200k) or money ($2, 0.50 USD)")
    number = float(re.sub("[,_]", "", match[2])) * _SCALES[match[3].lower()]
    return number, "usd" if match[1] or unit[:1] in ("$", "u", "d") else "tokens" if unit else ""


def parse_whole(text: str) -> int:
    """Read a whole number from 0 as people write it: `20`, `1_000`, `1,000`.

    Raises:
        ValueError: it is none; signs of other scripts, as the superscript two, are none.
    """
    bare = re.sub("[,_]", "", text.strip())
    if not bare.isascii() or not bare.isdigit():
        raise ValueError(f"{text!r} is no whole number")
    return int(bare)


_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_flag(value: Any) -> bool:
    """Read true or false, or a word for it.

    Raises:
        ValueError: it is neither.
    """
    found = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return found


def no_such_option(name: str, known: Iterable[str]) -> str:
    """Say that an option is none, and which may be meant."""
    near = nearest(name, known)
    return f"there is no option {name}{f'; did you mean {near}?' if near else ''}"
