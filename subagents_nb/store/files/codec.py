"""Documents to bytes and back. What can't be read becomes `Unreadable` with its kind, never a default."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from subagents_nb.domain.values.base import SCHEMA_VERSION, Document
from subagents_nb.errors import Unreadable

D = TypeVar("D", bound=Document)


def encode(document: Document) -> bytes:
    """Return the document as one JSON object in UTF-8."""
    try:
        return to_json(document, exclude_none=True, inf_nan_mode="null", indent=1)
    except PydanticSerializationError:
        return lenient_json(document.model_dump(exclude_none=True))


def lenient_json(value: Any) -> bytes:
    """Encode JSON data in which a model left half a character (a lone surrogate): it becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    data = json.loads(text, parse_constant=lambda _: None)  # NaN and the infinities become null, as elsewhere
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def decode(data: bytes, kind: type[D], run_id: str) -> D:
    """Return the document that `data` holds.

    Raises:
        Unreadable: empty, torn, foreign, or written by a newer version.
    """
    document = _as_written(data, kind)
    if document is not None and document.run_id == run_id:
        return document
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable("it is empty" if not data else "it holds only blanks or zeros", kind="empty")
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # half a character would break whoever shows it
    except UnicodeEncodeError as error:
        raise Unreadable("it holds half a character (a lone surrogate)", kind="foreign") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no whole JSON document ({_short_error(error)})", kind="torn") from error
    return as_document(value, kind, run_id)


def as_document(value: Any, kind: type[D], run_id: str) -> D:
    """Return the document that JSON data is. Raises as `decode`."""
    if not isinstance(value, dict):
        raise Unreadable("it is not a JSON object", kind="foreign")
    version = value.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise Unreadable(f"it was written by a newer version of this package (schema {version})", kind="newer")
    if value.get("kind") != kind.model_fields["kind"].default:
        raise Unreadable(f"it is not a {kind.__name__} (kind {str(value.get('kind'))[:40]!r})", kind="foreign")
    if value.get("run_id") != run_id:
        raise Unreadable("it names another run", kind="foreign")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise Unreadable(f"it is not a {kind.__name__}: {_short_error(error)}", kind="foreign") from error


def _as_written(data: bytes, kind: type[D]) -> D | None:
    """Return the document if it is, byte for byte, what this version would write; else None, which says nothing.

    Lists read thousands: this takes half the time of looking for each fault by itself, and none can hide in it.
    """
    try:
        document = kind.model_validate_json(data)
        same = document.schema_version == SCHEMA_VERSION and encode(document) == data
    except (ValidationError, ValueError):
        return None
    return document if same else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# Built once: `json.loads` would build a decoder for each of thousands of runs in a list.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _short_error(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(p) for p in first['loc'])}: {first['msg']}"
    return str(error)[:120] or type(error).__name__
