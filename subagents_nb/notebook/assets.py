"""The widget's module and style: from the installed package, or from the checkout beside it."""

from __future__ import annotations

import functools
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@functools.cache
def asset(name: str) -> str:
    """Return an asset's text; given a path, anywidget would keep every widget alive for ever (anywidget#929).

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for folder in (_PACKAGE / "static", _PACKAGE.parent / "widgets"):
        path = folder / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(
        f"the widget file {name} is missing from this installation of subagents_nb; install it again"
    )
