"""What people write, read alike wherever they write it: on a line, in a cell, in a file, in Python."""

from __future__ import annotations

import contextlib
import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from subagents_nb.domain.values.durations import looks_like_duration, parse_duration
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.reading import Unfit, must_be


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise must_be("a number", value)
    return value


def _says_something(text: str) -> str:
    if not text.strip():
        raise Unfit(f"must say something, not {shown(text)}")
    if "\0" in text:
        raise Unfit("holds a character that no command or model can be given")
    if len(text) > MAX_CHARS:
        raise Unfit(f"has {len(text):,} characters, more than {MAX_CHARS:,}")
    return text.strip()


def _seconds(value: Any) -> float:
    wanted = must_be("seconds, or text such as 90s, 30m or 1h", value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wanted
    if isinstance(value, str) and not looks_like_duration(value):
        raise wanted
    try:
        return parse_duration(value)
    except ValueError as error:
        raise must_be("above zero and at most 7 days", value) from error


def _counted(value: Any) -> int:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = parse_whole(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise must_be("a whole number above zero", value)
    return value


# Python takes True for 1; whoever wrote it meant no number.
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_flag)]
Real: TypeAlias = Annotated[float, BeforeValidator(_no_flag)]
Time: TypeAlias = Annotated[float | str, BeforeValidator(_no_flag)]  # seconds, or as `words.parse_duration` reads it
# In files and mappings, where they are read at once.
Text: TypeAlias = Annotated[str, AfterValidator(_says_something)]
Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds)]
Milliseconds: TypeAlias = Annotated[float, BeforeValidator(lambda given: _seconds(min(_counted(given), 10**12) / 1000))]
Count: TypeAlias = Annotated[int, BeforeValidator(_counted)]

MAX_CHARS = 10_000
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
    flag = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise must_be("true or false", value)
    return flag
