"""The two kinds of values: those we make, which forbid what they don't know, and those we read, which ignore it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


class Ordered(BaseModel):
    """A model whose fields stand on disk in an order of their own: those that it inherits would all come first."""

    _ON_DISK: ClassVar[str] = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        order, fields = cls.__dict__.get("_ON_DISK", "").split(), cls.__pydantic_fields__
        if order and set(order) != set(fields):
            raise TypeError(f"{cls.__name__} is not written whole: {sorted(set(order) ^ set(fields))}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Put the fields in their order before the schema is made: it is the order in which they are written."""
        if order := cls.__dict__.get("_ON_DISK", "").split():
            fields = cls.__pydantic_fields__
            cls.__pydantic_fields__ = {name: fields[name] for name in order}
        return handler(source)


# Of each process most models are never used. To make them all takes a quarter of what a start takes.
_BUILT_WHEN_USED: ConfigDict = {"defer_build": True, "frozen": True, "protected_namespaces": ()}


def build_models() -> None:
    """Make now what each model needs to read and to write, for a process that others are copies of."""
    left: list[type[Ordered]] = [Ordered]
    while left:
        model = left.pop()
        left += model.__subclasses__()
        if not model.__pydantic_complete__:
            model.model_rebuild()


class Value(Ordered):
    """A frozen value made by this package."""

    model_config = ConfigDict(**_BUILT_WHEN_USED, extra="forbid")


class Document(Ordered):
    """A frozen record on disk. Unknown keys are ignored, so a newer writer of the same schema stays readable."""

    model_config = ConfigDict(**_BUILT_WHEN_USED, extra="ignore")

    schema_version: int = SCHEMA_VERSION
    kind: str
    run_id: str


def stable_json(value: Any) -> str:
    """Encode plain JSON data so that equal data gives equal text: keys sorted, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def pretty_json(text: str) -> str:
    """Return JSON text with a line for each item; text that is none stays as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def sha256_text(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
