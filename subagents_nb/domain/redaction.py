"""Secrets taken out of a text: the values of secret-looking variables, and what looks like a key by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_KEY_LIKE = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_SHORTEST_SECRET = 8
_HIDDEN = "[redacted]"
# Keys that say by their form what they are; of the others nobody can tell.
_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{40,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{16,}"
    r"|(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{1,20000}-----END [A-Z ]{0,30}PRIVATE KEY-----"
)


class Redactor:
    """Replace the values of secret-looking variables wherever they turn up in a text.

    With `shapes`, what looks like a key of a well-known kind goes too: for what leaves this machine.
    """

    def __init__(self, environ: Mapping[str, str], names: Iterable[str] = (), *, shapes: bool = False) -> None:
        named = frozenset(names)
        values = {
            value.strip()
            for name, value in environ.items()
            if (name in named or _KEY_LIKE.search(name)) and len(value.strip()) >= _SHORTEST_SECRET
        }
        # The longest first: one secret may begin with another.
        alternatives = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if alternatives else None
        self._shapes = shapes

    def __call__(self, text: str) -> str:
        """Return the text without any of the values."""
        kept = self._pattern.sub(_HIDDEN, text) if self._pattern else text
        return _SHAPES.sub(_HIDDEN, kept) if self._shapes else kept

    def data(self, value: Any) -> Any:
        """Return plain JSON data with every text in it redacted, keys too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(key)): self.data(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(one) for one in value]
        return value
