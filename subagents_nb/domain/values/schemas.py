"""A JSON Schema with its local references put in place: what can be asked of a model, which reads no references."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from subagents_nb.domain.values.pointer import PointerError, resolve_pointer

_MOST_NODES = 20_000
_DEFINITIONS = ("$defs", "definitions")
_OF_SCHEMAS = ("properties", "patternProperties", "dependentSchemas")  # names a person chose, and a schema for each
_DATA = ("const", "enum", "default", "examples")


def validator_of(schema: dict[str, Any]) -> Any:
    """Return a validator that knows the schema alone: jsonschema_rs by itself opens addresses and files named in it.

    Raises:
        jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError: it is no schema, or names others.
    """
    return jsonschema_rs.validator_for(schema, retriever=_nothing)


def _nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is not looked up; only references within the schema are followed")


class SchemaProblem(ValueError):
    """The schema can't be asked of a model; the message says why."""


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without references and definitions.

    Raises:
        SchemaProblem: a reference leads nowhere or back to itself, or the whole would be too large.
    """
    schema_whole = _Inlining(schema).schema(schema, ())
    return dict(schema_whole)


class _Inlining:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, node: Any, within: tuple[str, ...]) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise SchemaProblem(f"with its references put in place it has more than {_MOST_NODES:,} parts")
        if isinstance(node, list):
            return [self.schema(one, within) for one in node]
        if not isinstance(node, dict):
            return node
        result: dict[str, Any] = {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            if reference in within:
                raise SchemaProblem(
                    f"it refers to itself ({reference}), and models are asked for an answer of a known depth: "
                    "give each level a type of its own, or a flat list whose items name their parent"
                )
            result = dict(self.schema(self._target(reference), (*within, reference)))
        for key, value in node.items():
            if key in _DEFINITIONS or (key == "$ref" and isinstance(value, str)):
                continue
            if key in _OF_SCHEMAS and isinstance(value, dict):
                result[key] = {name: self.schema(one, within) for name, one in value.items()}
            else:
                result[key] = value if key in _DATA else self.schema(value, within)
        return result

    def _target(self, reference: str) -> dict[str, Any]:
        try:
            target = resolve_pointer(self._root, unquote(reference.removeprefix("#")))
        except PointerError as error:
            raise SchemaProblem(f"its reference {reference!r} leads nowhere") from error
        if not isinstance(target, dict):
            raise SchemaProblem(f"its reference {reference!r} leads to no schema")
        return target
