"""The one writer to a person's terminal: names, answers, settings and errors come from anybody and are made plain."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from subagents_nb.plain_text import plain


def say(what: Any, *, end: str = "\n", flush: bool = False) -> None:
    """Write something to the standard output."""
    _write(sys.stdout, f"{what}{end}", flush=flush)


def complain(what: Any) -> None:
    """Write something to the standard error output."""
    _write(sys.stderr, f"{what}\n", flush=True)


def hand_over(text: str) -> None:
    """Write what a program may read: into a pipe or a file letter by letter, on a screen as `say` does."""
    sys.stdout.write(plain(text) if sys.stdout.isatty() else text)


def _write(stream: TextIO, text: str, *, flush: bool) -> None:
    clean_text = plain(text)
    try:
        stream.write(clean_text)
    except UnicodeEncodeError:  # a terminal of few letters, or half a character in a name
        encoding = stream.encoding or "ascii"
        stream.write(clean_text.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()
