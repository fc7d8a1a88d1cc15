"""Mappings of a cell's YAML: keys in any spelling, texts filled in, and every fault with its line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeVar

from subagents_nb.catalog.strict_yaml import Lines
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.faults import nearest, shown, snake
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.errors import LaunchRefused, RequestError

Path: TypeAlias = "tuple[str | int, ...]"
T = TypeVar("T")
UNTOLD = "-"  # in place of a task whose fault was told already

_TEXTS = {one.name for one in OPTIONS if one.kind in ("text", "remark")} | {
    "agent", "task", "as", "label", "item", "key", "on_empty", "on_failure", "path", "session",
}  # fmt: skip
# What the origin calls it.
_ALSO = {"output_schema": "schema", "chain": "steps", "template": "each"}


class Refused(Exception):
    """The fault was noted; this part can't be made."""


@dataclass(slots=True)
class Fields:
    """One mapping: its values by our names of their keys, and where each stands."""

    values: dict[str, Any]
    keys: dict[str, str]
    path: Path

    def at(self, name: str) -> Path:
        """Return where a value stands; where the mapping does, if it has none."""
        return (*self.path, self.keys[name]) if name in self.keys else self.path


@dataclass(slots=True)
class CellReader:
    """Reads mappings whose lines are known, and gathers their faults as line and text."""

    lines: Lines
    fill: Callable[[str], str] | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)

    def fields(self, given: object, path: Path, known: Sequence[str], what: str) -> Fields:
        """Return a mapping by our names of its keys; unknown and doubled keys are faults, and left out."""
        if not isinstance(given, Mapping):
            self.refuse(path, f"{what} is a mapping of keys, not {shown(given)}")
        found = Fields({}, {}, path)
        for key, value in given.items():
            name = named(str(key))
            if name not in known:
                self.note((*path, key), f"{what} has no key {key!r}{_meant(name, known)}")
            elif name in found.keys:
                self.note((*path, key), f"{key!r} says the same as {found.keys[name]!r}; keep one of them")
            else:
                found.values[name], found.keys[name] = value, str(key)
        return found

    def texts(self, given: Fields) -> None:
        """Fill in the texts; what should be one and is none is a fault, and counts as not given."""
        for name, value in list(given.values.items()):
            if name in _TEXTS and value is None:
                del given.values[name]
            elif name in _TEXTS and not isinstance(value, str):
                kind = "YAML takes braces for a mapping; " if isinstance(value, Mapping) else ""
                self.note(given.at(name), f"{given.keys[name]} is text, not {shown(value)}; {kind}put it in quotes")
                self.leave_out(given, name)
            elif isinstance(value, str) and self.fill is not None:
                try:
                    given.values[name] = self.fill(value)
                except Exception as error:  # noqa: BLE001 - whatever filling in refuses is a fault of this line
                    self.note(given.at(name), str(error))

    def leave_out(self, given: Fields, name: str) -> None:
        """Go on without a value whose fault was told; a task is never missed for it."""
        given.values.pop(name, None)
        if name == "task":
            given.values[name] = UNTOLD

    def composed(self, make: Callable[..., T], given: Fields, options: Mapping[str, Any] | None = None) -> T:
        """Return what was composed of the options; what its parts refuse is told at their keys.

        It is made without those then, so that the rest of it can be planned.
        """
        left = dict(options or {})
        try:
            return make(**left)
        except LaunchRefused as refused:
            for reason in map(Reason, refused.reasons):
                name = reason.field
                self.note(given.at(name), reason.text if name in given.keys else reason)
                for known in (name, f"{name}_"):
                    left.pop(known, None)
        except RequestError as error:
            self.note(given.path, str(error))
        if len(left) < len(options or {}):
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
        """Return the line of a value, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

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


def _meant(name: str, known: Sequence[str]) -> str:
    """Say which key may be meant, or which there are."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else f"; it has {', '.join(known)}"
