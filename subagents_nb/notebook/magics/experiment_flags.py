"""The flags by which a launch says what it belongs to, how it is judged, and over which grid it is repeated."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from subagents_nb.domain.plans.options import BY_NAME
from subagents_nb.notebook.magics.line_parser import MagicParser

# What a value on the line is to be, by the kind of the option; for any other it is a text.
_TYPES: dict[str, Callable[[str], Any]] = {"number": float, "count": int, "duration": str}
_YES = {"true": True, "false": False}


def add_experiment_flags(parser: MagicParser) -> None:
    """Add them to the parser of a magic that launches."""
    add = parser.add_argument
    add("--experiment", metavar="NAME", help="what the run belongs to, for %%subagent_compare")
    add("--param", action="append", default=[], metavar="NAME=VALUE", help="tell the run apart by this; repeatable")
    add("--note", metavar="TEXT", help="a remark of yours, kept with the run")
    add(
        "--score", action="append", default=[], metavar="NAME",
        help="a function of yours that takes the Run and gives a number, or a mapping of names to numbers;\n"
        "it is called here, when you ask for the end of the run; repeatable",
    )  # fmt: skip
    add(
        "--sweep", action="append", default=[], metavar="NAME=A,B",
        help="one run for each value: of a flag, as model=a,b, or of {{ NAME }} in the text; repeatable",
    )  # fmt: skip
    add(
        "--cases", metavar="NAME|FILE",
        help="one run for each case: of Cases or a DataFrame of yours, or a .csv or .jsonl file; {case.x} in the text\n"
        "is its input x, and a scorer finds the right answer as run.case.expected",
    )  # fmt: skip
    add("--failed", metavar="missing|wrong", help="what a failed run is where others are right or wrong (missing)")
    add("--repeat", metavar="NUMBER", help="how often each combination of a sweep is run (1)")
    add("--max-parallel", metavar="NUMBER", help="begin a run of a sweep only when fewer are live")
    add("--sweep-budget", metavar="AMOUNT", help="what a whole sweep may use: tokens, as 200k, or money, as '$2'")


def about_run(options: Any, parser: MagicParser) -> dict[str, Any]:
    """Return what the flags say about a run, as arguments of `launch`.

    Raises:
        UsageError: a value makes no sense.
    """
    from subagents_nb.domain.plans.grid import parsed

    about: dict[str, Any] = {"experiment": options.experiment, "notes": options.note or ""}
    if options.param:
        about["params"] = {name: parsed(value) for name, value in (_pair(p, "--param", parser) for p in options.param)}
    return about


def scorers_of(options: Any, variables: Mapping[str, Any], parser: MagicParser) -> list[Any]:
    """Return the user's functions that --score names.

    Raises:
        UsageError: there is no such function.
    """
    from subagents_nb.notebook.bodies.namespace import lookup

    scorers = [lookup(name, variables, "--score") for name in options.score]
    if not scorers:
        return []
    from subagents_nb.errors import RequestError
    from subagents_nb.experiments.rescoring import as_scorer

    try:
        return [as_scorer(scorer) for scorer in scorers]
    except RequestError as error:
        parser.error(f"--score: {error}")


def grid_of(options: Any, variables: Mapping[str, Any], parser: MagicParser, known: frozenset[str]) -> dict[str, Any]:
    """Return the grid that --sweep gives, values as the option's own type.

    Raises:
        UsageError: it can't be read, or a name stands twice.
    """
    from subagents_nb.notebook.bodies.namespace import lookup

    grid: dict[str, Any] = {}
    for flag in options.sweep:
        name, text = _pair(flag, "--sweep", parser)
        name = name.replace("-", "_")
        words = _words(text)
        if name in grid:
            parser.error(f"--sweep: {name} is given twice; write all its values behind one")
        if not all(words):
            parser.error(f"--sweep: {flag!r} has an empty value; write NAME=A,B and quote values with commas")
        if name == "schema":
            grid[name] = {word: lookup(word, variables, "--sweep") for word in words}
        else:
            grid[name] = [_value(name, word, parser, known) for word in words]
    return grid


def cases_of(options: Any, variables: Mapping[str, Any], parser: MagicParser) -> Any:
    """Return the cases that --cases names: a variable of the person, else a file; None without them.

    Raises:
        UsageError: there are none of this name, or they can't be read.
    """
    if options.cases is None:
        return None
    from subagents_nb.errors import RequestError
    from subagents_nb.experiments.cases.case_list import Cases
    from subagents_nb.notebook.bodies.namespace import lookup

    try:
        named = lookup(options.cases, variables, "--cases") if options.cases.isidentifier() else options.cases
        return named if isinstance(named, Cases) else Cases(named)
    except RequestError as error:
        parser.error(f"--cases: {error}")


def _value(name: str, word: str, parser: MagicParser, known: frozenset[str]) -> Any:
    from subagents_nb.domain.plans.grid import parsed

    kind = _TYPES.get(BY_NAME[name].kind) if name in BY_NAME else None
    if name in known and kind is None:
        return _YES.get(word, word)
    try:
        return parsed(word, kind)
    except ValueError:
        parser.error(f"--sweep: {word!r} is no value for {name}")


def _words(text: str) -> Sequence[str]:
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]


def _pair(given: str, flag: str, parser: MagicParser) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name.strip():
        parser.error(f"{flag}: {given!r} is no NAME=VALUE")
    return name.strip(), value
