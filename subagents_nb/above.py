"""What a layer calls of one above it: how a run shows itself, for example. It is registered from above, by name.

So nothing imports upwards, not even by a string that no tool would see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_load: Callable[[str], Any]


def register(load: Callable[[str], Any]) -> None:
    """Let `load` find what has a name. The front door does it, which Python runs before any module of ours."""
    global _load
    _load = load


def above(name: str) -> Any:
    """Return what the front door has registered under a name; it is loaded now, if nothing has used it yet."""
    return _load(name)
