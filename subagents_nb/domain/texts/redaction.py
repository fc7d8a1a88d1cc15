"""Secrets taken out of a text: the values of secret-looking variables, and what looks like a key by itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from subagents_nb.domain.agents.environment import carries_secret, is_secret

# Looser than what tools are denied: nothing is lost but a value that nobody misses.
_KEY_LIKE = re.compile(r"key(?!board)|token(?!iz)|secret|passw|credential|auth(?!or(?!iz))", re.IGNORECASE)
# These say where a secret is kept or of which kind it is.
_ABOUT = re.compile(
    r"_(?:PATH|DIR|FILE|SOCK|SOCKET|HOST|METHOD|MODE|TYPE|NAME|REALM|FIELD|ALG|ALGORITHM)\Z", re.IGNORECASE
)
_SURELY = re.compile(r"pass|secret|pwd|tokens?\Z|(?:api|access|private)_?key", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]{1,15}(?:[-_. ][a-z]{1,15}){0,3}\Z")
_SHORTEST_SECRET = 8
_HIDDEN = "[redacted]"
_USER_AND_PASSWORD = re.compile(r"://[^\s/:@]{0,256}:([^\s/@]{1,1024})@")
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
            text
            for name, value in environ.items()
            if len(text := value.strip()) >= _SHORTEST_SECRET and (name in named or _holds_secret(name, text))
        }
        # Of an address, the password by itself too, as a program says it.
        passwords = (found[1] for value in values for found in _USER_AND_PASSWORD.finditer(value))
        values |= {form for one in passwords for form in (one, unquote(one)) if len(form) >= _SHORTEST_SECRET}
        # As they stand in JSON, and on one line.
        values |= {form for value in values for form in (json.dumps(value)[1:-1], " ".join(value.split()))}
        # The longest first: one secret may begin with another.
        self._values = tuple(sorted(values, key=len, reverse=True))
        self._by_first = {value[0]: tuple(v for v in self._values if v[0] == value[0]) for value in self._values}
        self._firsts = frozenset(self._by_first)
        self._longest = len(self._values[0]) if self._values else 0
        self._shortest = len(self._values[-1]) if self._values else sys.maxsize
        self._shapes = shapes

    def __call__(self, text: str) -> str:
        """Return the text without any of the values."""
        if len(text) >= self._shortest:
            for value in self._values:
                if value in text:
                    text = text.replace(value, _HIDDEN)
        return _SHAPES.sub(_HIDDEN, text) if self._shapes else text

    def data(self, value: Any) -> Any:
        """Return plain JSON data with every text in it redacted, keys too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(key)): self.data(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(one) for one in value]
        return value

    def unfinished(self, text: str) -> int:
        """Return where in the text an end begins that may be the beginning of a value; its length if there is none."""
        size, by_first = len(text), self._by_first
        if self._firsts.isdisjoint(text):
            return size
        for start in range(max(0, size - self._longest + 1), size):
            if text[start] in by_first:  # every piece of every answer comes by here
                for value in by_first[text[start]]:
                    complete = len(value) <= size - start
                    if not complete and value.startswith(text[start:]) and not self._within(text, start):
                        return start
        return size

    def _within(self, text: str, place: int) -> bool:
        """Say whether a whole value begins before a place and goes beyond it: what stands there begins none then."""
        for value in self._values:
            start = text.find(value, max(0, place - len(value) + 1))
            if 0 <= start < place:
                return True
        return False


class RedactedStream:
    """A text that comes in pieces, given on without the values, whole or cut. Usual text is not kept back."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._kept = ""

    @property
    def waits(self) -> bool:
        """Whether something is kept back."""
        return bool(self._kept)

    def push(self, piece: str) -> str:
        """Take the next piece and return what may be shown by now."""
        text = self._kept + piece if self._kept else piece
        end = self._redact.unfinished(text)
        self._kept = text[end:]
        return self._redact(text[:end])

    def end(self) -> str:
        """Return what was kept back: no more comes that could complete it."""
        kept, self._kept = self._kept, ""
        return self._redact(kept)


def _holds_secret(name: str, value: str) -> bool:
    if carries_secret(value):
        return True
    if not (is_secret(name) or _KEY_LIKE.search(name)) or _ABOUT.search(name):
        return False
    # AUTH_BACKEND=production is no secret, and an answer without the word is a worse answer.
    return _SURELY.search(name) is not None or _WORDS.match(value) is None
