"""Whatever stands in a document is read back although what is None is left out when it is written."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing

import pytest
from pydantic import BaseModel

import subagents_nb.domain

for module in pkgutil.walk_packages(subagents_nb.domain.__path__, "subagents_nb.domain."):
    importlib.import_module(module.name)


def models(kind: type[BaseModel]) -> list[type[BaseModel]]:
    found = [one for sub in kind.__subclasses__() for one in (sub, *models(sub))]
    return [one for one in dict.fromkeys(found) if one.__module__.startswith("subagents_nb.domain")]


@pytest.mark.parametrize("model", models(BaseModel), ids=lambda model: model.__name__)
def test_a_field_that_may_be_none_need_not_be_written(model: type[BaseModel]) -> None:
    fields = model.model_fields.items()
    assert [name for name, field in fields if field.is_required() and may_be_none(field.annotation)] == []


def may_be_none(annotation: object) -> bool:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(may_be_none(part) for part in typing.get_args(annotation))
    return annotation is None or annotation is type(None)
