"""Make foreign text fit to be shown: no control characters, one line, and no secret of this process."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_KEY_LIKE = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_SHORTEST_SECRET = 8
_HIDDEN = "[redacted]"


class Redactor:
    """Replace the values of secret-looking variables wherever they turn up in a text."""

    def __init__(self, environ: Mapping[str, str], names: Iterable[str] = ()) -> None:
        named = frozenset(names)
        values = {
            value.strip()
            for name, value in environ.items()
            if (name in named or _KEY_LIKE.search(name)) and len(value.strip()) >= _SHORTEST_SECRET
        }
        # The longest first: one secret may begin with another.
        alternatives = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if alternatives else None

    def __call__(self, text: str) -> str:
        """Return the text without any of the values."""
        return self._pattern.sub(_HIDDEN, text) if self._pattern else text


def one_line(text: str, limit: int = 300) -> str:
    """Return the text on one line, without control or direction characters, cut to `limit` characters."""
    # Bounded before the scan: a provider may answer with a whole page.
    head = text[: 20 * limit]
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in head if not _is_format(c))
    flat = " ".join(kept.split())
    return flat if len(flat) <= limit and len(head) == len(text) else flat[: limit - 1].rstrip() + "…"


def _is_format(character: str) -> bool:
    return unicodedata.category(character) in ("Cf", "Cs", "Co")
