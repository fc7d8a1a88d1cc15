"""The widget's module and style: from the installed package, or from the checkout beside it."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[a-z]+\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r"/\*\* @[^*\n]*\*/ ?")
_ASIDE = re.compile(r"[ \t]+// [^\n\"'`]*$", re.MULTILINE)  # no quote: it stands in no text
_INDENT = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)


@functools.cache
def asset(name: str) -> str:
    """Return an asset's text; given a path, anywidget would keep every widget alive for ever (manzt/anywidget#929).

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


def joined(*modules: str) -> str:
    """Join modules that import from each other into one, dependencies first: a host takes a single text.

    It goes to the page with each view, so comments, types, indentation and empty lines are left out.

    Raises:
        ValueError: one imports in a way that can't be joined.
    """
    script = "\n".join(
        _EXPORT.sub("", _IMPORT.sub("", _ASIDE.sub("", _TYPE.sub("", _COMMENT.sub("", text))))) for text in modules
    )
    if left := re.search(r"^\s*import\b.*", script, re.MULTILINE):
        raise ValueError(f"the widget can't be put together: {left[0]}")
    if open_line := next((line for line in script.splitlines() if line.count("`") % 2), None):
        raise ValueError(f"the widget can't be put together: a template of several lines: {open_line}")
    return _INDENT.sub("", script)
