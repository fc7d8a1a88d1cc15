"""Run ids: `r-`, nine characters of time, ten of chance; sorting them sorts by time of launch."""

from __future__ import annotations

import re
from typing import NewType

RunId = NewType("RunId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, without i, l, o, u
_TIME_CHARS = 9  # 45 bits of milliseconds: enough until the year 3084
_CHANCE_CHARS = 10
_PATTERN = re.compile(rf"r-[{_ALPHABET}]{{{_TIME_CHARS + _CHANCE_CHARS}}}\Z")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,79}\Z")
MIN_PREFIX = 8


def _encode(number: int, width: int) -> str:
    chars = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        chars.append(_ALPHABET[digit])
    return "".join(reversed(chars))


def make_run_id(unix_ms: int, chance: int) -> RunId:
    """Build a run id from the time in milliseconds and at least 50 random bits."""
    return RunId("r-" + _encode(unix_ms, _TIME_CHARS) + _encode(chance, _CHANCE_CHARS))


def launched_ms(run_id: str) -> int:
    """Return when a run was launched, in milliseconds since 1970, by its id."""
    number = 0
    for char in run_id[2 : 2 + _TIME_CHARS]:
        number = number * 32 + _ALPHABET.index(char)
    return number


def is_run_id(text: str) -> bool:
    """Say whether a text is a whole run id; nothing else may become a path."""
    return _PATTERN.match(text) is not None


def short_id(run_id: str) -> str:
    """Return the last four characters, enough to tell runs of one screen apart."""
    return run_id[-4:]


def names_itself(name: str, run_id: str) -> bool:
    """Say whether a name ends in the run's own id, as generated ones do: it can mean no other run."""
    return name.endswith(f"-{short_id(run_id)}")


def is_run_name(text: str) -> bool:
    """Say whether a text can name a run: 1 to 80 letters, digits, `_ . -` or spaces, no leading dash, no id."""
    return _NAME.match(text) is not None and text == text.strip() and not text.startswith("r-")
