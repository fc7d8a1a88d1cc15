"""What a kept value is, and the words for one that can't be kept."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from subagents_nb.domain.plans.inputs import InputKind


class CantKeep(Exception):
    """The value can't be put into a run; the text says why and what to do."""


class TooLarge(Exception):
    """The value takes more room than is allowed; nothing more was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A value as bytes. The same value gives the same bytes."""

    kind: InputKind
    type: str
    data: bytes
    extension: str
    media_type: str
    shape: tuple[int, ...] | None = None
    description: str = ""
    content_sha256: str | None = None  # where the bytes say more than the value: by which version they were written


class Bounded(io.BytesIO):
    """A file in memory that refuses to grow beyond its limit, so that a huge value is found out early."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self.full = False

    def write(self, data: Any) -> int:
        """Take the next piece.

        Raises:
            TooLarge: there is no room for it.
        """
        if self.tell() + memoryview(data).nbytes > self._limit:
            self.full = True
            raise TooLarge
        return super().write(data)


def loaded(module: str) -> ModuleType | None:
    """Return a module that the user has imported. Nothing is imported for a value that can't come from it."""
    return sys.modules.get(module)


def is_a(value: object, module: str, *names: str) -> bool:
    """Say whether the value is of exactly one of these types: a subclass may hold what its base has no place for."""
    loaded_module = loaded(module)
    return loaded_module is not None and any(type(value) is getattr(loaded_module, name, None) for name in names)


def type_name(value: object) -> str:
    """Return what to call the type of a value: by its package, not by the module that happens to define it."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"
