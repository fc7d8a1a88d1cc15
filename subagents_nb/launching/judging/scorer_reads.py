"""What a scorer reads beside the run: data of its notebook, functions of its modules, files that it names.

For scorers that are too dear to be called each time. Each thing has a name and a digest by its value, the same in a
fresh kernel; what has no value that could be compared (a client, an open file) is named as not checked.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import hashlib
import math
import pickle
import re
import sys
import types
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.errors import SubagentsError
from subagents_nb.launching.judging.scorer_identity import OURS, code_text
from subagents_nb.store.files.disk import DISK

_MOST = 500  # things that are followed
_CHARS = 1_000_000  # of one value
_DEPTH = 40
_ITEMS = 20_000  # of one list or mapping
_CELLS = 200_000  # of one table or array
_TIMES = (datetime.date, datetime.time, datetime.datetime, datetime.timedelta)
_PLAIN = (str, bytes, int, float, complex, bool, range, decimal.Decimal, uuid.UUID, *_TIMES)
_ARRAYS = ("numpy", "pandas", "polars", "pyarrow")
_OPENS = frozenset({"open", "read_text", "read_bytes", "read_csv", "read_json", "read_parquet", "connect", "urlopen"})
_NAMES_A_FILE = re.compile(r"[^\n\0]{1,300}\Z")


class Reads(NamedTuple):
    """What a scorer reads, by name, and the names of what can't be checked."""

    parts: dict[str, str]
    unchecked: frozenset[str]

    def digest(self, without: frozenset[str] = frozenset()) -> str:
        """Return one hash of all that is checked."""
        left_out = self.unchecked | without
        return sha256_text(stable_json({name: one for name, one in self.parts.items() if name not in left_out}))[:12]

    def changed(self, other: Reads) -> frozenset[str]:
        """Return the names of what is not the same in both, such as a cache that was filled meanwhile."""
        names = self.parts.keys() | other.parts.keys()
        return frozenset(name for name in names if self.parts.get(name) != other.parts.get(name))


class _Unbound(Exception):
    """A value can't be compared."""


def what_it_reads(scorer: Any) -> Reads:
    """Return all that a scorer reads, as far as it can be seen."""
    return _Reader().read(scorer)


class _Reader:
    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.unchecked: set[str] = set()
        self.opens = False
        self.seen: dict[int, Any] = {}  # held, or an id might be given away again

    def read(self, scorer: Any) -> Reads:
        while OURS in getattr(scorer, "__dict__", {}):
            scorer = vars(scorer)[OURS]
        self.follow("scorer", scorer)
        named = getattr(scorer, "reads", None)  # files, as a person names them
        for name in named if isinstance(named, list | tuple) else [named] if isinstance(named, str | PurePath) else ():
            self.file(str(name))
        if self.opens and not any(name.startswith("file ") for name in self.parts):
            self.unchecked.add("the files that it opens")
        return Reads(self.parts, frozenset(self.unchecked))

    def follow(self, name: str, thing: Any) -> None:
        """Note one thing, and what it reads itself."""
        if id(thing) in self.seen:
            return
        if len(self.seen) > _MOST:
            self.unchecked.add("more than can be followed")
            return
        self.seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            self.function(name, thing)
        elif isinstance(thing, types.MethodType):
            self.follow(f"{name}'s function", thing.__func__)
            self.follow(f"{name}'s object", thing.__self__)
        elif isinstance(thing, functools.partial):
            self.follow(f"{name}'s function", thing.func)
            self.values(name, {str(at): held for at, held in enumerate(thing.args)} | thing.keywords)
        elif isinstance(thing, type):
            self.kind(name, thing)
        elif isinstance(thing, types.ModuleType):
            self.parts[name] = f"{thing.__name__} {getattr(thing, '__version__', '')}"
        elif isinstance(wrapped := getattr(thing, "__wrapped__", None), types.FunctionType):  # functools.cache
            self.follow(f"{name}'s function", wrapped)
        elif isinstance(thing, types.BuiltinFunctionType | types.MethodDescriptorType):
            self.parts[name] = _called(thing)
            if not isinstance(owner := getattr(thing, "__self__", None), types.ModuleType | None):
                self.follow(f"{name}'s object", owner)
        else:
            self.value(name, thing)

    def function(self, name: str, function: types.FunctionType) -> None:
        if not _is_users(function):
            self.parts[name] = _called(function)
            return
        code = function.__code__
        # A name by itself, or equal functions of two modules would be one.
        self.parts[f"{name} (code)"] = sha256_text(code_text(code))
        given = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
        self.values(name, {str(key): held for key, held in given.items()})
        free = zip(code.co_freevars, function.__closure__ or (), strict=False)
        for called, cell in free:
            try:
                self.follow(called, cell.cell_contents)
            except ValueError:  # not bound yet
                continue
        self.globals(code, function.__globals__)

    def globals(self, code: types.CodeType, known: Mapping[str, Any]) -> None:
        used = set(_names(code))
        self.files(_constants(code))
        # What it imports itself is known once it has; a name that is none of a module finds nothing there.
        late = {called: module for called in used - known.keys() if (module := sys.modules.get(called)) is not None}
        for called in sorted(used & (known.keys() | late.keys())):
            held = known[called] if called in known else late[called]
            if isinstance(held, types.ModuleType) and _is_users(held):
                for inner in sorted(used & vars(held).keys()):
                    self.follow(f"{called}.{inner}", vars(held)[inner])
            else:
                self.follow(called, held)
        self.opens = self.opens or bool(used & _OPENS)

    def kind(self, name: str, kind: type) -> None:
        if not _is_users(kind):
            self.parts[name] = _called(kind)
            return
        for base in kind.__mro__:
            if not _is_users(base):
                continue
            for called, held in sorted(vars(base).items()):
                inner = getattr(held, "__func__", None) or getattr(held, "fget", None) or held
                if isinstance(inner, types.FunctionType):
                    self.follow(f"{base.__name__}.{called}", inner)
                elif not called.startswith("__"):
                    self.value(f"{base.__name__}.{called}", held)

    def values(self, name: str, held: Mapping[str, Any]) -> None:
        for key, value in held.items():
            self.follow(f"{name} {key}", value)

    def value(self, name: str, value: Any) -> None:
        self.files([value])
        try:
            self.parts[name] = _digest(value)
        except Exception:  # noqa: BLE001 - it has no value, or its own code failed at saying it
            kind = type(value)
            fields = getattr(value, "__dict__", None)
            if isinstance(fields, dict) and (_is_users(kind) or hasattr(kind, "__dataclass_fields__")):
                self.kind(kind.__name__, kind)
                for field, held in sorted(fields.items()):
                    self.follow(f"{name}.{field}", held)
            elif isinstance(value, list | tuple | set | frozenset | dict):
                self.inside(name, value)
            else:
                self.unchecked.add(f"{name} ({type(value).__name__})")

    def inside(self, name: str, value: Any) -> None:
        """Follow the items of what as a whole has no value, as a list of functions."""
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, held in items:
            self.follow(f"{name}[{key!r}]"[:200], held)

    def files(self, values: Iterable[Any]) -> None:
        """Note the files that texts and paths among these name."""
        for value in values:
            text = str(value) if isinstance(value, PurePath) else value
            if isinstance(text, str) and _NAMES_A_FILE.match(text) and ("." in text or "/" in text):
                self.file(text, lenient=True)

    def file(self, name: str, *, lenient: bool = False) -> None:
        try:
            if lenient and not Path(name).is_file():
                return
            self.parts[f"file {name}"] = hashlib.sha256(DISK.read(name, 64 * 1024 * 1024)).hexdigest()
        except (OSError, ValueError, SubagentsError):
            self.unchecked.add(f"file {name}")


def _digest(value: Any) -> str:
    total = hashlib.sha256()
    left = _CHARS
    for text in _texts(value, 0):
        left -= len(text)
        if left < 0:
            raise _Unbound
        total.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return total.hexdigest()


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Yield a value in texts that say it whole, the same in every process.

    Raises:
        _Unbound: it has none.
    """
    kind = type(value)
    if depth > _DEPTH or (isinstance(value, dict | set | frozenset | list | tuple) and len(value) > _ITEMS):
        raise _Unbound
    yield kind.__qualname__
    if value is None or value is ... or isinstance(value, enum.Enum):
        yield str(value)
    elif kind in _PLAIN or isinstance(value, PurePath):
        yield repr(value)
    elif isinstance(value, re.Pattern):
        yield f"{value.pattern!r} {value.flags}"
    elif isinstance(value, dict):
        if all(type(key) is str for key in value):
            for key in sorted(value):
                yield key
                yield from _texts(value[key], depth + 1)
            yield "end"
        else:
            yield from sorted(_digest(pair) for pair in value.items())
    elif isinstance(value, set | frozenset):
        yield from sorted(map(_digest, value))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one, depth + 1)
        yield "end"
    elif _is_users(kind):
        raise _Unbound  # its methods count, too
    elif dataclasses.is_dataclass(value):
        yield from _texts(
            {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, depth + 1
        )
    elif kind.__module__.partition(".")[0] in _ARRAYS and math.prod(getattr(value, "shape", ())) <= _CELLS:
        yield hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()
    else:
        raise _Unbound


def _is_users(thing: Any) -> bool:
    """Say whether this is of the person's notebook or modules, not of an installed package or of Python."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    if not isinstance(name, str) or name.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    if name.partition(".")[0] in ("subagents_nb", "builtins"):
        return False
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _called(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or ""
    package = sys.modules.get(module.partition(".")[0])
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    return f"{module}.{name} {getattr(package, '__version__', '')}"


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _constants(code: types.CodeType) -> Iterator[Any]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _constants(one)
        else:
            yield one
