"""What the flags of a launch say, as arguments of `launch`. The flags are made from the table of options."""

from __future__ import annotations

import functools
from typing import Any

from subagents_nb.domain.plans.options import OPTIONS, Option, of_launch
from subagents_nb.notebook.magics.line_parser import MagicParser


def launch_options(
    given: Any, parser: MagicParser, faults: Any, traits: Any = None, *, chain: bool = False
) -> dict[str, Any]:
    """Return what the flags say, as arguments of `launch`.

    The traits fill in what no agent can say; of a chain as a whole that is its own deadline too. Values that make no
    sense are noted in `faults`.
    """
    options = {}
    for one in of_launch(chain=chain):
        options[one.name] = faults.tried(functools.partial(_flag_value, one, getattr(given, one.name), parser))
        if one.trait and (not one.behind or (chain and one.scope == "each")):
            options[one.name] = options[one.name] or getattr(traits, one.trait, None) or None
    return options


def defaults_of(traits: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return the defaults of the magics that an agent's file outranks, as an argument of `launch`; nothing if none is.

    A usage budget is of no agent, but it holds for a run as settings do.
    """
    defaults = {}
    for one in OPTIONS:
        value = (getattr(traits, one.trait, None) if one.trait and one.behind else None) or None
        if value is not None and one.kind == "value":
            value = faults.tried(functools.partial(_flag_value, one, value, parser, f"SubagentMagics.{one.trait}"))
        if value is not None:
            defaults[one.name] = value
    return {"defaults": defaults} if defaults else {}


def _flag_value(option: Option, given: Any, parser: MagicParser, called: str = "") -> Any:
    from subagents_nb.catalog.strict_yaml import as_value

    try:
        return option.read(given, value=as_value)
    except ValueError as error:
        parser.error(f"{called or option.flag}: {error}")
