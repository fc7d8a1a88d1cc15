"""An interval as a small bar: one element with a gradient, which any host shows, and none where styles are stripped."""

from __future__ import annotations

from collections.abc import Sequence

from subagents_nb.blocks import Child, page_only
from subagents_nb.notebook.page.html import element

_MARK = "display:inline-block;width:110px;max-width:100%;height:4px;margin:2px 0;border-radius:2px"


def interval(ends: Sequence[float], *, final: bool = True, zero: float | None = None) -> Child:
    """Draw an interval and its mean, and a line where zero stands; paler while it is not final."""
    low, at, high = (100 * end for end in ends)
    before, after = max(low, at - 1), min(high, at + 1)
    pale, filled = (f"color-mix(in srgb,currentColor {share}%,transparent)" for share in (12, 55 if final else 30))
    parts = [(pale, 0.0, low), (filled, low, before), ("currentColor", at - 1, at + 1), (filled, after, high)]
    stops = ",".join(f"{tint} {begin:.1f}% {end:.1f}%" for tint, begin, end in [*parts, (pale, max(high, at + 1), 100)])
    line = ""
    if zero is not None:
        begin, end = 100 * zero - 0.5, 100 * zero + 0.5
        line = f"linear-gradient(to right,transparent {begin:.1f}%,currentColor 0 {end:.1f}%,transparent 0),"
    style = f"{_MARK};background:{line}linear-gradient(to right,{stops})"
    return page_only(element("span", {"aria-hidden": "true", "style": style}))
