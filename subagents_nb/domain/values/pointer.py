"""JSON Pointer (RFC 6901)."""

from __future__ import annotations

import re
from typing import Any

_LONE_TILDE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)  # longer ones are past the end of every array


class PointerError(ValueError):
    """The pointer is malformed, or leads nowhere in this value."""


def parse_pointer(text: str) -> tuple[str, ...]:
    """Return the parts of a pointer.

    Raises:
        PointerError: it is neither empty nor begins with a slash, or holds a lone `~`.
    """
    if text == "":
        return ()
    if not text.startswith("/"):
        raise PointerError(f"{text!r} is no JSON Pointer: it is empty or begins with a slash, as in '/files'")
    parts = []
    for part in text[1:].split("/"):
        if _LONE_TILDE.search(part):
            raise PointerError(f"{text!r} is no JSON Pointer: a ~ stands only as ~0 (for ~) or ~1 (for /)")
        parts.append(part.replace("~1", "/").replace("~0", "~"))
    return tuple(parts)


def resolve_pointer(value: Any, text: str) -> Any:
    """Return what a pointer leads to.

    Raises:
        PointerError: it is malformed or leads nowhere; the message names the first part that is not there.
    """
    for part in parse_pointer(text):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part):
            if int(part) >= len(value):
                raise PointerError(f"{text!r} leads nowhere: the array has {len(value)} items")
            value = value[int(part)]
        else:
            raise PointerError(f"{text!r} leads nowhere: there is no {part!r}")
    return value
