"""From an array that a step found to the items of a fan-out, each with a key that tells it from the others."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.pointer import PointerError, resolve_pointer

KEY_CHARS = 200
_SLUG_CHARS = 80
_SLUG_BYTES = 200  # with the item's number in front it is one name of a file


class FanOutProblem(ValueError):
    """The array can't be expanded; the message says why."""


class Item(Value):
    """One item: its number from 0, its key, and the value itself."""

    index: int
    key: str
    value: Any


def items_of(value: Any, path: str, *, key: str | None, max_items: int) -> tuple[Item, ...]:
    """Return the items of the array that `path` leads to.

    Raises:
        FanOutProblem: there is no array, it is too long (nothing is cut), or two items can't be told apart.
    """
    try:
        array = resolve_pointer(value, path)
    except PointerError as error:
        raise FanOutProblem(str(error)) from error
    if not isinstance(array, list):
        raise FanOutProblem(f"{path or 'the whole value'!r} is no array")
    if len(array) > max_items:
        raise FanOutProblem(
            f"there are {len(array)} items, more than max_items ({max_items}); none was started, since nothing is cut"
        )
    items = [Item(index=n, key=_key(one, n, key), value=one) for n, one in enumerate(array)]
    seen: dict[str, Item] = {}
    for item in items:
        other = seen.setdefault(item.key, item)
        if other is not item:
            raise FanOutProblem(f"items {other.index} and {item.index} have the same key ({item.key!r})")
    return tuple(items)


def slug(key: str) -> str:
    """Return a key as it stands in names of files: letters of any script in lower case, digits, dashes, at most 80."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())
    head = re.sub(r"[\W_]+", "-", plain).strip("-")[:_SLUG_CHARS].encode("utf-8", "replace")[:_SLUG_BYTES]
    return head.decode("utf-8", "ignore").strip("-") or "item"


def _key(value: Any, number: int, pointer: str | None) -> str:
    if pointer is None:
        return str(number)
    try:
        key = resolve_pointer(value, pointer)
    except PointerError as error:
        raise FanOutProblem(f"item {number} has no key: {error}") from error
    if isinstance(key, bool):
        return "true" if key else "false"
    if not isinstance(key, str | int | float):
        raise FanOutProblem(f"the key of item {number} is no text, number or truth value")
    text = str(key)
    if not text.strip():
        raise FanOutProblem(f"the key of item {number} is empty")
    if len(text) > KEY_CHARS:
        raise FanOutProblem(f"the key of item {number} has {len(text)} characters, more than {KEY_CHARS}")
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise FanOutProblem(f"the key of item {number} holds control characters")
    return text
