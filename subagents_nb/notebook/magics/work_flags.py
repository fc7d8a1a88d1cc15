"""What the flags of a launch say, as arguments of `launch`. The flags are made from the table of options."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from subagents_nb.domain.plans.options import OPTIONS, Option, of_launch
from subagents_nb.notebook.magics.line_parser import MagicParser


def launch_options(
    given: Any,
    parser: MagicParser,
    faults: Any,
    traits: Any = None,
    *,
    chain: bool = False,
    options: Iterable[Option] = OPTIONS,
) -> dict[str, Any]:
    """Return what the flags say, as arguments of `launch`; of what no agent can say, the traits fill the rest.

    Values that make no sense are noted in `faults`.
    """
    said = {
        one.name: faults.tried(functools.partial(_said, one, getattr(given, one.name), parser))
        for one in of_launch(options, chain=chain)
    }
    return said | {name: said[name] or getattr(traits, name, None) or None for name in _OF_NO_AGENT if name in said}


_OF_NO_AGENT = ("worktree", "gate", "cwd")
# What the magics call otherwise than `launch` does.
_TRAITS = {"model": "default_model"}
# What an agent's file or the settings may say too, and what holds for it behind the run: a default never outranks an
# agent. A chain's own deadline is of no agent; nor is a usage budget, but it is for a run as settings are.
_BEHIND = tuple(one for one in OPTIONS if one.file is not None or one.name == "usage_budget")


def defaults_of(traits: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return the defaults of the magics, as an argument of `launch`; nothing if none is set."""
    found = {}
    for one in _BEHIND:
        value = getattr(traits, name := _TRAITS.get(one.name, one.name), None)
        if value and one.kind == "value":
            value = faults.tried(functools.partial(_said, one, value, parser, f"SubagentMagics.{name}"))
            if value is not None:
                found[one.name] = value
        elif value:
            found[one.name] = value
    return {"defaults": found} if found else {}


def _said(option: Option, given: Any, parser: MagicParser, called: str = "") -> Any:
    try:
        return option.read(given, value=_as_yaml)
    except ValueError as error:
        parser.error(f"{called or option.flag}: {error}")


def _as_yaml(given: str) -> Any:
    from subagents_nb.catalog.strict_yaml import as_value

    return as_value(given)
