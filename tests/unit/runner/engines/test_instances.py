"""Made-up values fit the schemas that people write."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents_nb.runner.engines.scripted.instances import minimal_instance

FINDINGS = {
    "$defs": {"Finding": {"type": "object", "properties": {"column": {"type": "string"}}, "required": ["column"]}},
    "type": "object",
    "properties": {"findings": {"type": "array", "items": {"$ref": "#/$defs/Finding"}, "minItems": 2}},
    "required": ["findings"],
}
TREE = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["next"],
        }
    },
    "$ref": "#/$defs/Node",
}


@pytest.mark.parametrize(
    "schema",
    [
        FINDINGS,
        TREE,
        {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"const": 4}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]},
        {"type": ["string", "null"], "minLength": 9},
        {"type": "string", "maxLength": 2},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 3},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 3},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "number"}}}]},
        {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "string"}]},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "integer", "multipleOf": 7, "minimum": 8},
        {"type": "integer", "exclusiveMaximum": -3},
    ],
)
def test_a_made_up_value_fits(schema: dict[str, Any]) -> None:
    jsonschema_rs.validator_for(schema).validate(minimal_instance(schema))


@given(st.integers(-50, 50), st.integers(0, 20), st.booleans())
def test_a_number_between_two_bounds_fits_them(low: int, span: int, whole: bool) -> None:
    schema = {"type": "integer" if whole else "number", "minimum": low, "maximum": low + span}

    jsonschema_rs.validator_for(schema).validate(minimal_instance(schema))
