"""Schemas with their references put in place, as they are asked of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic_ai import Agent

from subagents_nb.domain.values.schemas import SchemaProblem, inlined, validator_of
from subagents_nb.runner.engines.native.output import output_spec

X = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize("mode", ["tool", "native", "prompted"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/X"}}, "$defs": {"X": X}},
        {"type": "object", "properties": {"a": {"$ref": "#/definitions/X"}}, "definitions": {"X": X}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A%20B"}}, "$defs": {"A B": X}},
        {"type": "object", "properties": {"b": X, "a": {"$ref": "#/properties/b"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/Y"}}, "$defs": {"X": X, "Y": {"$ref": "#/$defs/X"}}},
    ],
)
def test_references_within_a_schema_are_put_in_place_and_can_be_asked_for(schema: dict[str, Any], mode: Any) -> None:
    whole = inlined(schema)

    assert whole["properties"]["a"] == X and "ref" not in str(whole) and not {"$defs", "definitions"} & whole.keys()
    Agent("test", output_type=output_spec(schema, "found", mode))


def test_names_and_data_that_look_like_references_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "$defs": {"enum": [{"$ref": "#/nowhere"}]}},
    }
    assert inlined(schema) == schema


def test_what_stands_beside_a_reference_goes_before_it() -> None:
    schema = {"$ref": "#/$defs/X", "description": "one", "$defs": {"X": {**X, "description": "any"}}}
    assert inlined(schema) == {**X, "description": "one"}


def _bomb() -> dict[str, Any]:
    levels = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 10} for n in range(9)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": {**levels, "L9": X}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "it refers to itself (#)"),
        ({"$ref": "#/$defs/X", "$defs": {"X": {"items": {"$ref": "#/$defs/X"}}}}, "it refers to itself (#/$defs/X)"),
        ({"type": "object", "items": {"$ref": "#foo"}}, "leads nowhere"),
        ({"type": "object", "items": {"$ref": "#/type"}}, "leads to no schema"),
        (_bomb(), "more than 20,000 parts"),
    ],
)
def test_what_no_model_can_be_asked_for_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaProblem) as caught:
        inlined(schema)
    assert said in str(caught.value)


@pytest.mark.parametrize("scheme", ["file://", "http://127.0.0.1:9"])
def test_a_schema_opens_nothing_that_it_names(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "other.json").write_text('{"type": "array"}')
    with pytest.raises((ValueError, jsonschema_rs.ValidationError), match="not looked up"):
        validator_of({"type": "array", "items": {"$ref": f"{scheme}{tmp_path}/other.json"}})
