"""Text, bytes, JSON values, arrays and figures."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from subagents_nb.domain.plans.inputs import describe_array, describe_bytes, describe_json, describe_text
from subagents_nb.launching.inputs.kind import Bounded, CantKeep, Kept, TooLarge, is_a, loaded, type_name

_DEEPEST = 100


def text(value: Any, limit: int) -> Kept | None:
    """Return a str as UTF-8, or None if the value is none."""
    if type(value) is not str:
        return None
    try:
        data = value.encode("utf-8")
    except UnicodeEncodeError:
        raise CantKeep("it holds half of a surrogate pair, which is no text; mend it where it was read") from None
    _check(len(data), limit)
    about = describe_text(value)
    return Kept(kind="text", type="str", data=data, extension=".txt", media_type="text/plain", description=about)


def raw(value: Any, limit: int) -> Kept | None:
    """Return bytes as they are, or None if the value is none."""
    if type(value) not in (bytes, bytearray, memoryview):
        return None
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    _check(size, limit)
    data = bytes(value)
    return Kept(
        kind="bytes",
        type=type_name(value),
        data=data,
        extension=".bin",
        media_type="application/octet-stream",
        description=describe_bytes(data),
    )


def array(value: Any, limit: int) -> Kept | None:
    """Return a NumPy array as npy, or None if the value is none.

    Raises:
        CantKeep: it holds Python objects, which only a pickle could store.
        TooLarge: it takes more than `limit` bytes.
    """
    if not is_a(value, "numpy", "ndarray", "memmap", "recarray"):
        return None
    if value.dtype.hasobject:
        raise CantKeep("it is an array of Python objects; make numbers or fixed text of them with .astype")
    _check(value.nbytes, limit)
    numpy: Any = loaded("numpy")
    sink = Bounded(limit + 4096)
    numpy.lib.format.write_array(sink, numpy.asanyarray(value), allow_pickle=False)
    first = [_plain(one) for one in value.ravel()[:10].tolist()]
    return Kept(
        kind="array",
        type=type_name(value),
        shape=tuple(int(n) for n in value.shape),
        data=sink.getvalue(),
        extension=".npy",
        media_type="application/x-npy",
        description=describe_array(str(value.dtype), value.shape, first),
    )


def json_value(value: Any, limit: int) -> Kept | None:
    """Return a JSON value as JSON, or None if the value is of another type.

    Raises:
        CantKeep: something in it has no place in JSON; the text names where.
        TooLarge: it takes more than `limit` bytes.
    """
    numpy = loaded("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and not isinstance(value, (str, bytes)):
        value = value.item()
    if value is not None and type(value) not in (bool, int, float, dict, list, tuple):
        return None
    _check_json(value, "", set())
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        data = written.encode("utf-8")
    except UnicodeEncodeError:
        raise CantKeep("it holds half of a surrogate pair, which is no text; mend it where it was read") from None
    _check(len(data), limit)
    return Kept(
        kind="json",
        type=type_name(value),
        shape=(len(value),) if isinstance(value, (dict, list, tuple)) else None,
        data=data,
        extension=".json",
        media_type="application/json",
        description=describe_json(value, written),
    )


def _check_json(value: Any, where: str, above: set[int]) -> None:
    place = f" at {where[:80]}" if where else ""
    if isinstance(value, float) and not math.isfinite(value):
        raise CantKeep(f"it holds {value}{place}, which JSON has no word for; put None there")
    if value is None or isinstance(value, (str, bool, int, float)):
        return
    if type(value) not in (dict, list, tuple):
        raise CantKeep(f"it holds a {type_name(value)}{place}, which is no JSON value; make text or numbers of it")
    if id(value) in above:
        raise CantKeep(f"it holds itself{place}")
    if len(above) > _DEEPEST:
        raise CantKeep(f"it is nested more than {_DEEPEST} levels deep")
    inner = above | {id(value)}
    if isinstance(value, dict):
        for key, one in value.items():
            if type(key) is not str:
                raise CantKeep(f"it has the key {ascii(key)[:60]}{place}, and keys of JSON are text; use str(key)")
            _check_json(one, f"{where}[{key!r}]", inner)
    else:
        for number, one in enumerate(value):
            _check_json(one, f"{where}[{number}]", inner)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool)) else str(value)


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge


def figure(value: Any, limit: int) -> Kept | None:
    """Return a figure as PNG, or None if the value is none.

    Raises:
        CantKeep: it can't be drawn here.
        TooLarge: the picture takes more than `limit` bytes.
    """
    sink = Bounded(limit)
    try:
        if is_a(value, "matplotlib.figure", "Figure"):
            # Without the version of the library in it the same figure gives the same bytes.
            value.savefig(sink, format="png", metadata={"Software": None})
        elif _is_picture(value):
            value.save(sink, format="PNG")
        elif is_a(value, "plotly.graph_objs", "Figure"):
            sink.write(value.to_image(format="png"))
        elif is_a(value, "matplotlib.axes", "Axes"):
            raise CantKeep("it is one plot of a figure; pass its .figure")
        else:
            return None
    except (CantKeep, TooLarge):
        raise
    except Exception as error:
        if sink.full:
            raise TooLarge from error
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise CantKeep(f"it could not be drawn as PNG ({why}); save it as PNG yourself and pass the bytes") from error
    data = sink.getvalue()
    width, height = struct.unpack(">II", data[16:24])
    return Kept(
        kind="figure",
        type=type_name(value),
        shape=(height, width),
        data=data,
        extension=".png",
        media_type="image/png",
        description=f"a picture of {width} x {height} pixels",
    )


def _is_picture(value: Any) -> bool:
    """Say whether it is an image of Pillow: opened from a file it is of a class of that format's own."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(value).__mro__)
