"""Untrusted text without what would steer a terminal or turn a line around. Needs nothing of the package."""

from __future__ import annotations

import re

# C0 and C1 controls apart from tab and newline, bidirectional overrides, zero-width marks.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")

# One that a cut leaves without its end would be another, shorter one.
_ESCAPE_CUT_OFF = r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?\Z"

# Besides these what takes no room, or only room, on a page, and half characters. Texts: they are compiled for who asks.
_UNSEEN = (
    f"{_UNSAFE.pattern[:-1]}\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u2028\u2029\u3164\uffa0"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
_JOINERS = "\u200c\u200d"  # words of some scripts, and signs made of several, need them
_BLANKS = "[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]{100,}"
_EMPTY_LINES = r"\n(?:[ \t]*\n){20,}"


def plain(text: str) -> str:
    """Return untrusted text without terminal escapes, control and direction characters; tabs and newlines stay."""
    return _UNSAFE.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def visible(text: str) -> str:
    """Return untrusted text with a sign for all that could hide what else is in it: for who decides by what it shows.

    `plain` would leave out what a terminal takes for a command of its own, and a shell does not. What pushes the rest
    out of sight is counted instead.
    """
    seen = re.sub(_UNSEEN, lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))
    seen = re.sub(_BLANKS, lambda found: f" ⟨{len(found[0])} blanks⟩ ", seen)
    return re.sub(_EMPTY_LINES, lambda found: f"\n⟨{found[0].count(chr(10)) - 1} empty lines⟩\n", seen)


def unseen(text: str) -> tuple[str, ...]:
    """Return what a text holds that nobody sees, each once: `U+E0041`. A model reads it all the same."""
    found = (char for char in re.findall(_UNSEEN, text) if char not in _JOINERS)
    return tuple(f"U+{ord(char):04X}" for char in dict.fromkeys(found))


def one_line(text: str, limit: int = 160) -> str:
    """Return untrusted text as one plain line of at most `limit` characters. Of a long text it reads the beginning."""
    size = 4 * limit
    while size < len(text):
        line = " ".join(plain(re.sub(_ESCAPE_CUT_OFF, "", text[:size])).split())
        if len(line) > limit:
            return shortened(line, limit)
        size *= 4
    return shortened(" ".join(plain(text).split()), limit)


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text; the last one says that there are more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
