"""Placeholders in the tasks of a chain: found and replaced in one pass, so what is put in is never looked at again.

The tokens are exact: `{task}`, `{previous}`, `{chain_dir}`, `{outputs.NAME}`, `{item}` and `{item.a.b}` (under the name
that the fan-out gives its item). Every other brace stays as it is, since tasks quote code and JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
RESERVED = frozenset({"task", "previous", "chain_dir", "outputs"})
_TOKEN = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_-]+)*)\}")
_INDEX_DIGITS = 18
_SIMPLE = ("task", "previous", "chain_dir")


class MissingField(ValueError):
    """An item has no such field; the message says which fields there are."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One token of a template: `{outputs.found}` has the word `outputs` and the path `("found",)`."""

    word: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return "{" + ".".join((self.word, *self.path)) + "}"


def placeholders(template: str, *, item: str | None = None) -> tuple[Placeholder, ...]:
    """Return the tokens of a template in order. `item` is the name that the fan-out gives its item, if it is in one."""
    tokens = (_token(match, item) for match in _TOKEN.finditer(template))
    return tuple(token for token in tokens if token is not None)


def near_misses(template: str, *, item: str | None = None) -> tuple[str, ...]:
    """Return what looks like a token and is none: `{outputs}`, `{outputs.a.b}`, `{task.x}`."""
    misses = []
    for match in _TOKEN.finditer(template):
        word = match[1]
        if word in RESERVED and _token(match, item) is None:
            misses.append(match[0])
    return tuple(dict.fromkeys(misses))


def fill(
    template: str,
    *,
    task: str,
    previous: str,
    chain_dir: str,
    outputs: Mapping[str, str],
    item: tuple[str, Any] | None = None,
) -> str:
    """Replace all tokens at once.

    Raises:
        MissingField: the item lacks a field that the template names.
        KeyError: an output is not there; planning makes sure that it is.
    """
    simple = {"task": task, "previous": previous, "chain_dir": chain_dir}
    name, value = item if item is not None else (None, None)

    def replace(match: re.Match[str]) -> str:
        token = _token(match, name)
        if token is None:
            return match[0]
        if token.word in simple and token.word != name:
            return simple[token.word]
        if token.word == "outputs":
            return outputs[token.path[0]]
        return as_text(_field(value, token))

    return _TOKEN.sub(replace, template)


def as_text(value: Any) -> str:
    """Return a value as it stands in a task: a text as such, everything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _token(match: re.Match[str], item: str | None) -> Placeholder | None:
    word, path = match[1], tuple(match[2].split(".")[1:])
    if word in _SIMPLE:
        return Placeholder(word, ()) if not path else None
    if word == "outputs":
        return Placeholder(word, path) if len(path) == 1 and NAME.match(path[0]) else None
    return Placeholder(word, path) if item is not None and word == item else None


def _field(value: Any, token: Placeholder) -> Any:
    for depth, part in enumerate(token.path):
        if isinstance(value, list) and _is_index(part) and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            where = Placeholder(token.word, token.path[:depth])
            raise MissingField(f"{token} names a field that {where} does not have: it is {_described(value)}")
    return value


def _is_index(part: str) -> bool:
    return part.isdigit() and len(part) <= _INDEX_DIGITS


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(sorted(map(str, value))[:12])}" if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return {str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
