"""Make foreign text fit to be shown: no control characters, one line, and no secret of this process."""

from __future__ import annotations

import unicodedata

from subagents_nb.domain.texts.redaction import Redactor as Redactor


def one_line(text: str, limit: int = 300) -> str:
    """Return the text on one line, without control or direction characters, cut to `limit` characters."""
    # Bounded before the scan: a provider may answer with a whole page.
    head = text[: 20 * limit]
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in head if not _is_format(c))
    flat = " ".join(kept.split())
    return flat if len(flat) <= limit and len(head) == len(text) else flat[: limit - 1].rstrip() + "…"


def _is_format(character: str) -> bool:
    return unicodedata.category(character) in ("Cf", "Cs", "Co")
