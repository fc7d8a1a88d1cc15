"""What marimo shows of a run, a board or a sweep: it calls `_display_` of a cell's last value, and there is no IPython.

What goes on is a widget that it can talk to; what has ended is a card, which stays in what is exported.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Shows(Protocol):
    """What can be a widget, and HTML."""

    def widget(self) -> Any: ...
    def _repr_html_(self) -> str: ...


class Card:
    """HTML as marimo takes it."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _mime_(self) -> tuple[str, str]:
        return "text/html", self._html


def marimo_display(shown: Shows, *, live: bool) -> Any:
    """Return what marimo shows in its place."""
    host = sys.modules.get("marimo")  # nobody else calls it
    if live and host is not None:
        return host.ui.anywidget(shown.widget())
    return Card(shown._repr_html_())
