"""Lengths of time as people write them. Nothing is imported for it: lines of cells are read by it too."""

from __future__ import annotations

import re

MAX_TIMEOUT_S = 7 * 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})\s*\Z", re.ASCII)


def looks_like_duration(text: str) -> bool:
    """Say whether a text is written like a length of time."""
    return _DURATION.match(text) is not None


def parse_duration(value: float | int | str) -> float:
    """Read a duration in seconds from a number or from `45`, `45s`, `30m`, `30min`, `1.5h`.

    Raises:
        ValueError: it is no duration, not positive, or longer than seven days.
    """
    if isinstance(value, bool):
        raise ValueError("a length of time is a number of seconds, not true or false")
    if isinstance(value, int | float):
        seconds = float(min(value, MAX_TIMEOUT_S + 1))  # an int may be too large for a float
    else:
        match = _DURATION.match(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"{value!r} is no length of time; write seconds (90) or 90s, 30m, 1.5h")
        seconds = float(match[1]) * _UNITS[match[2]]
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise ValueError(f"a length of time is more than 0 and at most 7 days, not {value!r}")
    return seconds
