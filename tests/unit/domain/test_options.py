"""An option of a launch is declared once: types share what they share by inheritance."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import pkgutil
from typing import Any

from pydantic import BaseModel

from subagents_nb import domain, launching, planning

MOST = 9


def _kinds() -> dict[type, dict[str, Any]]:
    found: dict[type, dict[str, Any]] = {}
    for room in (domain, planning, launching):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for kind in vars(importlib.import_module(module.name)).values():
                if not inspect.isclass(kind) or not kind.__module__.startswith("subagents_nb."):
                    continue
                if issubclass(kind, BaseModel):
                    found[kind] = {name: one.annotation for name, one in kind.model_fields.items()}
                elif dataclasses.is_dataclass(kind):
                    found[kind] = {one.name: one.type for one in dataclasses.fields(kind)}
    return found


def _declared_in(kind: type, name: str) -> type:
    return next(base for base in kind.__mro__ if name in vars(base).get("__annotations__", {}))


def test_no_two_types_share_ten_fields_but_by_inheritance() -> None:
    kinds = _kinds()
    alike = {}
    for one, other in itertools.combinations(kinds, 2):
        both = [name for name, of in kinds[one].items() if kinds[other].get(name) == of]
        copied = [name for name in both if _declared_in(one, name) is not _declared_in(other, name)]
        if len(copied) > MOST:
            alike[one.__name__, other.__name__] = copied
    assert len(kinds) > 100 and alike == {}
