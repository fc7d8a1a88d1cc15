"""Mappings of a cell's YAML: keys in any spelling, texts filled in, and every fault with its line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from subagents_nb.catalog.strict_yaml import Lines
from subagents_nb.domain.values.faults import meant, shown, snake
from subagents_nb.domain.values.reasons import Path, Reason
from subagents_nb.errors import LaunchRefused, RequestError

T = TypeVar("T")
UNTOLD = "-"  # in place of a task whose fault was told already

# What the origin calls it.
_ALSO = {"output_schema": "schema", "chain": "steps", "template": "each"}


class Refused(Exception):
    """The fault was noted; this part can't be made."""


@dataclass(slots=True)
class Fields:
    """One mapping: its values by our names of their keys, and where each stands."""

    values: dict[str, Any]
    paths: dict[str, Path]
    path: Path

    def at(self, name: str) -> Path:
        """Return where a value stands; where the mapping does, if it has none."""
        return self.paths.get(name, self.path)


@dataclass(slots=True)
class CellReader:
    """Reads mappings whose lines are known, and gathers their faults as line and text."""

    lines: Lines
    fill: Callable[[str], str] | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)

    def fields(self, given: object, path: Path, known: Sequence[str], what: str, kinds: Sequence[str] = ()) -> Fields:
        """Return a mapping by our names of its keys; unknown and doubled keys are faults, and left out.

        `kinds` are keys by which it would be something else; they may have been meant too.
        """
        if not isinstance(given, Mapping):
            self.refuse(path, f"{what} is a mapping of keys, not {shown(given)}")
        found = Fields({}, {}, path)
        for key, value in given.items():
            name = named(str(key))
            if name not in known:
                self.note((*path, key), f"{what} has no key {key!r}{meant(name, (*known, *kinds), 'it has')}")
            elif name in found.paths:
                self.note((*path, key), f"{key!r} says the same as {found.at(name)[-1]!r}; keep one of them")
            else:
                found.values[name], found.paths[name] = value, (*path, str(key))
                if isinstance(value, str) and self.fill is not None:
                    found.values[name] = self._filled(value, found.at(name), UNTOLD if name == "task" else None)
        return found

    def _filled(self, text: str, path: Path, otherwise: str | None) -> str | None:
        try:
            return self.fill(text) if self.fill is not None else text
        except Exception as error:  # noqa: BLE001 - whatever filling in refuses is a fault of this line
            self.note(path, str(error))
            return otherwise

    def composed(self, make: Callable[..., T], given: Fields, options: Mapping[str, Any] | None = None) -> T:
        """Return what was composed of the options; what its parts refuse is told at their keys.

        It is made without those then, so that the rest of it can be planned.
        """
        left = dict(options or {})
        try:
            return make(**left)
        except LaunchRefused as refused:
            for reason in map(Reason, refused.reasons):
                name = str(reason.path[0]) if reason.path else ""
                self.note(given.at(name), reason.text if name in given.paths else reason)
                for known in (name, f"{name}_"):
                    left.pop(known, None)
                if name == "task":
                    left[name] = UNTOLD  # a task is never missed for its fault
        except RequestError as error:
            self.note(given.path, str(error))
        if left != (options or {}):
            with contextlib.suppress(RequestError):
                return make(**left)
        raise Refused

    def tried(self, make: Callable[[], T]) -> T | None:
        """Return what was made, or None once its fault was noted."""
        try:
            return make()
        except Refused:
            return None

    def line_of(self, path: Path) -> int:
        """Return the line of a value, however its keys are spelt, or of the nearest thing around it."""
        at: Path = ()
        for part in path:
            inner = (*at, part)
            if inner not in self.lines:
                spelt = (one for one in self.lines if one[:-1] == at and one and named(str(one[-1])) == part)
                inner = next(spelt, at)
            if inner == at:
                break
            at = inner
        return self.lines.get(at, 1)

    def note(self, path: Path, text: str) -> None:
        """Remember a fault."""
        self.faults.append((self.line_of(path), text))

    def refuse(self, path: Path, text: str) -> NoReturn:
        """Remember a fault that keeps this part from being made."""
        self.note(path, text)
        raise Refused


def named(key: str) -> str:
    """Return our name of a key, however it is spelt."""
    name = snake(key)
    return _ALSO.get(name, name)
