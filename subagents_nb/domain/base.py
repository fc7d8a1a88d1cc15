"""The two kinds of values: those we make, which forbid what they don't know, and those we read, which ignore it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


class Value(BaseModel):
    """A frozen value made by this package."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Document(BaseModel):
    """A frozen record on disk. Unknown keys are ignored, so a newer writer of the same schema stays readable."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    schema_version: int = SCHEMA_VERSION
    kind: str
    run_id: str


def stable_json(value: Any) -> str:
    """Encode plain JSON data so that equal data gives equal text: keys sorted, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_text(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
