"""Whether a JSON Schema can be asked for as structured output."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from subagents_nb.domain.values.schemas import SchemaProblem, inlined, validator_of

_MAX_CHARS = 64 * 1024


def schema_problem(schema: dict[str, Any], name: str | None) -> str | None:
    """Return why this schema can't be used, or None: it must be a valid object schema without remote references."""
    called = f"the schema {name!r}" if name else "the schema"
    kind = schema.get("type")
    if kind != "object" and not ("$ref" in schema and "$defs" in schema):
        shown = f"of type {kind!r}" if kind else "without a type"
        return (
            f"{called} is no object schema ({shown}); models return objects: wrap it, "
            'for example {"type": "object", "properties": {"items": …}}'
        )
    if len(str(schema)) > _MAX_CHARS:
        return f"{called} is larger than {_MAX_CHARS // 1024} KiB"
    remote = _remote_reference(schema)
    if remote is not None:
        return f"{called} refers to {remote!r}; only references within it (#/…) are followed"
    try:
        validator_of(schema)
        inlined(schema)
    except SchemaProblem as error:
        return f"{called} can't be asked of a model: {error}"
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"{called} is no valid JSON Schema: {str(error).splitlines()[0]}"
    return None


def _remote_reference(value: Any) -> str | None:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                return reference
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return None
