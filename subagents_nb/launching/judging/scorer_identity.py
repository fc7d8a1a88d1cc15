"""Tell a scorer from another of its name: what it would do, as a short hash, the same in a fresh kernel.

Bytecode, constants and defaults count, and so do the functions of its own module that it calls and the plain values
that it closes over. Not its text: a file that was edited after its import would speak for another function than this.
And no list or mapping that it fills as it goes, such as a cache.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

OURS = "__scorer__"  # the attribute by which a wrapper of this package names what really judges
_CHARS = 12
_MOST = 200  # functions of the user's that are followed
_TEXT = 100_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def scorer_hash(scorer: Callable[[Any], Any]) -> str:
    """Return the hash of what a scorer does."""
    seen: dict[int, Any] = {}  # held, or an id might be given away again
    text = "\0".join(_parts(scorer, seen))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARS]


def _parts(thing: Any, seen: dict[int, Any]) -> Iterator[str]:
    while OURS in getattr(thing, "__dict__", {}):
        thing = vars(thing)[OURS]
    if id(thing) in seen or len(seen) > _MOST:
        yield "again"
        return
    seen[id(thing)] = thing
    if isinstance(thing, types.FunctionType):
        yield from _function(thing, seen)
    elif isinstance(thing, types.MethodType):
        yield from _parts(thing.__func__, seen)
        yield from _parts(thing.__self__, seen)
    elif isinstance(thing, functools.partial):
        yield from _parts(thing.func, seen)
        for held in (*thing.args, *(value for _, value in sorted(thing.keywords.items()))):
            yield from _held(held, seen)
    elif isinstance(thing, type) or not hasattr(thing, "__dict__"):
        yield _named(thing)
    else:
        yield from _instance(thing, seen)


def _instance(thing: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Yield an object that can be called, or an evaluator; the fields of a dataclass are what it was given."""
    kind = type(thing)
    yield _named(kind)
    for name in ("__call__", "evaluate"):
        method = getattr(kind, name, None)
        if isinstance(method, types.FunctionType):
            yield from _parts(method, seen)
    if dataclasses.is_dataclass(thing):
        yield from (_stable_text(getattr(thing, field.name, None)) for field in dataclasses.fields(thing))
    else:
        for name, held in sorted(vars(thing).items()):
            yield name
            yield from _held(held, seen)


def _held(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    if isinstance(value, types.FunctionType | types.MethodType | functools.partial):
        yield from _parts(value, seen)
    else:
        yield _stable_text(value) if _is_plain(value) else _named(type(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain, value))
    return value is None or value is ... or isinstance(value, str | bytes | int | float | complex)


def _function(function: types.FunctionType, seen: dict[int, Any]) -> Iterator[str]:
    yield from _code(function.__code__)
    given = sorted((function.__kwdefaults__ or {}).items())
    for held in (*(function.__defaults__ or ()), *(value for _, value in given)):
        yield from _held(held, seen)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not bound yet
            yield from _held(cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        called = function.__globals__.get(name)
        if isinstance(called, types.FunctionType) and called.__module__ == function.__module__:
            yield from _parts(called, seen)


def code_text(code: types.CodeType) -> str:
    """Say in one text what code does."""
    return "\0".join(_code(code))


def _code(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield _stable_text((code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield _stable_text(constant)


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*inner)


def _stable_text(value: Any) -> str:
    """Say a value in the same words in every process."""
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(map(_stable_text, value)))}}}"
    if isinstance(value, tuple | list):
        return f"[{','.join(map(_stable_text, value))}]"
    if isinstance(value, types.FunctionType | type):
        return _named(value)
    try:
        return f"{type(value).__qualname__} {_ADDRESS.sub('', repr(value))[:_TEXT]}"
    except Exception:  # noqa: BLE001 - somebody else's object
        return _named(type(value))


def _named(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
