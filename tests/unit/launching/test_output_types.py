"""From the JSON of an answer back to the type that was asked for."""

from __future__ import annotations

import datetime
import enum
import uuid

from pydantic import BaseModel, ConfigDict

from subagents_nb.launching.gathering.output_types import output_type


class Colour(enum.Enum):
    RED = "red"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    colour: Colour
    pair: tuple[int, int]
    key: uuid.UUID


def test_json_is_validated_as_json_in_strict_mode_too() -> None:
    key = "12345678-1234-5678-1234-567812345678"
    found = output_type(Strict).typed({"day": "2026-01-02", "colour": "red", "pair": [1, 2], "key": key})

    assert found == Strict(day=datetime.date(2026, 1, 2), colour=Colour.RED, pair=(1, 2), key=uuid.UUID(key))
