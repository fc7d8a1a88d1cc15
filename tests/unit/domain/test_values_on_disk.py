"""Whatever stands in a document is read back although what is None is left out when it is written."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing

from pydantic import BaseModel

import subagents_nb.domain

for module in pkgutil.walk_packages(subagents_nb.domain.__path__, "subagents_nb.domain."):
    importlib.import_module(module.name)


def models(kind: type[BaseModel]) -> list[type[BaseModel]]:
    found = [one for sub in kind.__subclasses__() for one in (sub, *models(sub))]
    return [one for one in dict.fromkeys(found) if one.__module__.startswith("subagents_nb.domain")]


def test_a_field_that_may_be_none_need_not_be_written() -> None:
    fields = [
        (model.__name__, name, field) for model in models(BaseModel) for name, field in model.model_fields.items()
    ]
    assert len(fields) > 500
    assert [one[:2] for one in fields if one[2].is_required() and may_be_none(one[2].annotation)] == []


def may_be_none(annotation: object) -> bool:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(may_be_none(part) for part in typing.get_args(annotation))
    return annotation is None or annotation is type(None)
