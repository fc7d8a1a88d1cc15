"""From the types people write to JSON Schema, and from the JSON that came back to those types."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from typing_extensions import is_typeddict  # before 3.12, pydantic takes only its TypedDict, which typing's test denies

from subagents_nb.domain.values.base import Value
from subagents_nb.errors import RequestError


class OutputType(Value):
    """What a person gave as `schema`: its JSON Schema, its name, and the type to give back, if it is one."""

    schema_: dict[str, Any]
    name: str | None
    type_: Any = None

    def typed(self, value: Any) -> Any:
        """Return plain JSON data as an instance of the type; as it is, when there is no type.

        Raises:
            RequestError: the data does not fit, as after the type was changed.
        """
        if self.type_ is None:
            return value
        try:
            # As JSON: there dates, enums and tuples are texts and lists, in strict mode too.
            return TypeAdapter(self.type_).validate_json(json.dumps(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RequestError(f"The result does not fit {self.name}: {where}: {first['msg']}.") from error


def output_type(schema: Any, *, name: str | None = None) -> OutputType:
    """Read a schema from a pydantic model, dataclass, TypedDict, or a JSON Schema as a mapping.

    Raises:
        RequestError: it is none of these, or pydantic can't make a schema of it.
    """
    if isinstance(schema, OutputType):
        return schema if name is None else schema.model_copy(update={"name": name})
    if isinstance(schema, Mapping):
        plain = {str(key): value for key, value in schema.items()}
        title = plain.get("title")
        return OutputType(schema_=plain, name=name or (title if isinstance(title, str) else None))
    if isinstance(schema, type) and (
        issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema) or is_typeddict(schema)
    ):
        try:
            json_schema = TypeAdapter(schema).json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            text = str(error).splitlines()[0]
            raise RequestError(f"{schema.__name__} can't be made into a JSON Schema: {text}") from error
        return OutputType(schema_=json_schema, name=name or schema.__name__, type_=schema)
    shown = name or getattr(schema, "__name__", None) or type(schema).__name__
    raise RequestError(
        f"{shown} is no object schema: give a pydantic model, a dataclass, a TypedDict, or a JSON Schema as a dict."
    )
