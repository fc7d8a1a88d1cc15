"""Figures of Matplotlib, Plotly and Pillow, as PNG."""

from __future__ import annotations

import struct
from typing import Any

from subagents_nb.launching.inputs.kind import Bounded, CantKeep, Kept, TooLarge, is_a, type_name

_HINT = "save it as PNG yourself and pass the bytes"


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
        raise CantKeep(f"it could not be drawn as PNG ({why}); {_HINT}") from error
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
