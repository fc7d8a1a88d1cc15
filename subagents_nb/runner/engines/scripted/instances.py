"""Build a small value that fits a JSON schema: the same one each time, for the deterministic twin."""

from __future__ import annotations

import math
from typing import Any

_DEEPEST = 12
_FORMATS = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def minimal_instance(schema: Any) -> Any:
    """Return a small value that should fit. The caller validates: patterns, `not` and the like are not solved."""
    return _build(schema, schema, 0)


def _build(schema: Any, root: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    schema = _flat(schema, root, depth)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    match _kind(schema):
        case "object":
            return _object(schema, root, depth)
        case "array":
            return _array(schema, root, depth)
        case "string":
            return _string(schema)
        case "integer":
            return int(_number(schema, whole=True))
        case "number":
            return _number(schema, whole=False)
        case "boolean":
            return False
        case _:
            return None


def _flat(schema: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    """Follow a local reference, merge allOf, take the first branch of anyOf and oneOf."""
    for _ in range(_DEEPEST):
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _merge(_resolve(schema["$ref"], root), rest)
        elif schema.get("allOf"):
            branches = schema["allOf"]
            schema = {key: value for key, value in schema.items() if key != "allOf"}
            for branch in branches:
                schema = _merge(schema, _flat(branch, root, depth + 1) if isinstance(branch, dict) else {})
        elif schema.get("anyOf") or schema.get("oneOf"):
            key = "anyOf" if schema.get("anyOf") else "oneOf"
            rest = {k: v for k, v in schema.items() if k != key}
            # Near the bottom of a recursive schema the branch without further structure ends it.
            plain = [b for b in schema[key] if isinstance(b, dict) and "$ref" not in b and _kind(b) != "object"]
            branch = plain[0] if plain and depth > 2 else schema[key][0]
            schema = _merge(rest, branch if isinstance(branch, dict) else {})
        else:
            break
    return schema


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def _resolve(reference: Any, root: Any) -> dict[str, Any]:
    node = root
    for part in str(reference).removeprefix("#").strip("/").split("/"):
        if part:
            name = part.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind:
        return str(kind)
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else ""


def _object(schema: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    return {name: _build(properties.get(name, {}), root, depth + 1) for name in dict.fromkeys(required)}


def _array(schema: dict[str, Any], root: Any, depth: int) -> list[Any]:
    fixed = [_build(item, root, depth + 1) for item in schema.get("prefixItems") or []]
    missing = int(schema.get("minItems", 0)) - len(fixed)
    if missing <= 0:
        return fixed
    item = schema.get("items", {})
    items = [_build(item, root, depth + 1) for _ in range(missing)]
    if schema.get("uniqueItems"):
        choices = _flat(item, root, depth).get("enum") if isinstance(item, dict) else None
        items = list(choices[:missing]) if choices else [_differ(value, n) for n, value in enumerate(items)]
    return fixed + items


def _differ(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return f"{value}{number}"
    return value + number if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _string(schema: dict[str, Any]) -> str:
    text = _FORMATS.get(str(schema.get("format")), "text")
    text = text.ljust(int(schema.get("minLength", 0)), "x")
    return text[: int(schema["maxLength"])] if "maxLength" in schema else text


def _number(schema: dict[str, Any], *, whole: bool) -> float:
    step = float(schema.get("multipleOf", 1 if whole else 0)) or (1.0 if whole else 0.0)
    lowest, highest = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
    floor, ceiling = max(lowest, above), min(highest, below)
    if floor <= 0 <= ceiling and above < 0 < below:
        return 0.0
    if floor > -math.inf:
        value = math.ceil(floor / step) * step if step else float(floor)
        if value <= above:
            value = value + step if step else (above + min(ceiling, above + 1)) / 2
        return value
    value = math.floor(ceiling / step) * step if step else float(ceiling)
    return (value - step if step else below - 1) if value >= below else value
