"""Untrusted texts and figures made short: what is shown has bounds, whoever wrote it."""

from __future__ import annotations

from subagents_nb.blocks import clean
from subagents_nb.domain.values import words


def line(text: str, limit: int = 160) -> str:
    """Return untrusted text as one clean line of at most `limit` characters."""
    return clean(words.one_line(text, limit))


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
        # Python refuses to write out an integer of more than some thousand digits: python/cpython#95778.
        return line(str(value), limit) if value.bit_length() <= 1024 else f"an integer of {value.bit_length():,} bits"
    return f"({type(value).__name__})"
