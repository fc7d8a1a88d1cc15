"""Untrusted text for a Markdown cell: shown as what it says, never as markup that can load or run anything.

Readers of Markdown differ in what they take for code, so nothing here depends on it: outside of the fences that are
made here no `<` and no run of three backticks is left.
"""

from __future__ import annotations

import re

from subagents_nb.domain.values.words import plain

_OPENS = re.compile(r" {0,3}(`{3,}(?=[^`\n]*\Z)|~{3,})[ \t]*([A-Za-z0-9_+-]{0,20})")
_RUNS = re.compile(r"`{3,}|~{3,}")
_TICKS = re.compile(r"`+")
# Only these are links; one reader undoes character references twice, so no list of bad schemes would do.
_OTHER_TARGETS = re.compile(r"\](?:\((?!https?://|mailto:)|:)", re.IGNORECASE)
# For nbconvert these begin mathematics that goes on through all blocks to its end, which may stand in a code block:
# what follows there, and was written as code, is prose then.
_LONG_MATH = re.compile(r"\${2,}|\\(?=\[|begin\{)")


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block whose fence is longer than any run of backticks in it."""
    whole = plain(text)
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(whole)), default=0))
    return f"{ticks}{language}\n{whole.rstrip(chr(10))}\n{ticks}"


def escaped(text: str) -> str:
    """Return Markdown with its own code blocks fenced anew; raw HTML and images become plain text, and so
    do links to anything but the web and mail."""
    lines = plain(text).split("\n")
    parts: list[str] = []
    prose: list[str] = []
    at = 0
    while at < len(lines):
        opens = _OPENS.match(lines[at])
        if opens is None:
            prose.append(lines[at])
            at += 1
            continue
        end = _end_of_fence(lines, at + 1, opens[1])
        parts += [_prose(prose, beside_code=True), fenced("\n".join(lines[at + 1 : end]), opens[2])]
        prose, at = [], end + 1
    return "\n\n".join(part for part in (*parts, _prose(prose, beside_code=bool(parts))) if part)


def inline(text: str) -> str:
    """Return a text as one line of plain words inside Markdown."""
    flat = " ".join(plain(text).split())
    return re.sub(r"[\\`*_\[\]#|!~$&<>]", lambda found: f"&#{ord(found[0])};", flat)


def _prose(lines: list[str], *, beside_code: bool) -> str:
    text = "\n".join(lines).strip("\n").replace("&", "&amp;").replace("<", "&lt;").replace("![", "!&#91;")
    text = _OTHER_TARGETS.sub(lambda found: f"]&#{ord(found[0][1])};", text)
    text = _RUNS.sub(_as_references, text)
    return _LONG_MATH.sub(_as_references, text) if beside_code else text


def _as_references(run: re.Match[str]) -> str:
    return f"&#{ord(run[0][0])};" * len(run[0])


def _end_of_fence(lines: list[str], start: int, fence: str) -> int:
    closes = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\Z")
    return next((at for at in range(start, len(lines)) if closes.match(lines[at])), len(lines))
