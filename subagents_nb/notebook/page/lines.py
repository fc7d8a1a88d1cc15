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


def fold(text: str, limit: int) -> tuple[str, int, str]:
    """Return the beginning and the end of a text that is too long, at most `limit` characters, and what lies between.

    Both end at the end of a line, where one is near. A block of code that is open where the end begins is opened there.
    """
    if len(text) <= limit:
        return text, 0, ""
    at, end = 2 * limit // 3, len(text) - limit // 3
    if (newline := text.rfind("\n", at - at // 4, at)) > 0:
        at = newline
    if (newline := text.find("\n", end, end + (len(text) - end) // 4)) >= 0:
        end = newline + 1
    head, tail = text[:at].rstrip(), text[end:].strip("\n")
    in_code = sum(row.startswith("```") for row in text[:end].splitlines()) % 2
    return head, end - len(head), f"```\n{tail}" if in_code and tail else tail


def cut_clean(text: str, limit: int) -> tuple[str, int]:
    """Return at most `limit` characters of untrusted text, clean, and how many of it were left out.

    It is cut first: cleaning takes time, and what is left out needs none.
    """
    kept, more = cut(text, limit)
    if more and (escape := kept.rfind("\x1b", max(0, limit - 32))) >= 0:
        kept, more = kept[:escape], len(text) - escape  # half of an escape would be shown as text
    return clean(kept), more


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
