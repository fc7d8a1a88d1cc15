"""Untrusted text without what would steer a terminal or turn a line around. Needs nothing of the package."""

from __future__ import annotations

import re

# C0 and C1 controls apart from tab and newline, bidirectional overrides, zero-width marks.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def plain(text: str) -> str:
    """Return untrusted text without terminal escapes, control and direction characters; tabs and newlines stay."""
    return _UNSAFE.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = 160) -> str:
    """Return untrusted text as one plain line of at most `limit` characters."""
    return shortened(" ".join(plain(text).split()), limit)


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text; the last one says that there are more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
