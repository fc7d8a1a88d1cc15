"""What a verb and an argument of one are, and how the words behind a flag are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from subagents_nb.domain.plans.options import read_count

Read = Callable[[str], Any]  # raises ValueError with what is wrong
FOREVER = "forever"  # how long --wait waits that stands alone
# How many runs a verb takes: none, one, one or none, any number, at least one.
RunCount = Literal["", "one", "maybe", "any", "some"]
NARGS: dict[RunCount, str | None] = {"one": None, "maybe": "?", "any": "*", "some": "+"}
_USAGES: dict[RunCount, str] = {
    "": "[FLAGS]",
    "one": "RUN [FLAGS]",
    "maybe": "[RUN] [FLAGS]",
    "any": "[RUN ...] [FLAGS]",
    "some": "RUN [RUN ...] [FLAGS]",
}


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument of a verb: a flag, or a word that stands alone."""

    names: tuple[str, ...]
    how: Mapping[str, Any]  # as argparse takes it
    read: Read | None
    in_terminal: Mapping[str, Any]  # what argparse takes there instead
    not_in_cell: str  # why it makes no sense there; empty where it does
    not_in_terminal: str

    @property
    def dest(self) -> str:
        """The name of its value among the options."""
        return next((name for name in self.names if name.startswith("--")), self.names[0]).lstrip("-").replace("-", "_")


def arg(
    *names: str,
    read: Read | None = None,
    in_terminal: Mapping[str, Any] = MappingProxyType({}),
    not_in_cell: str = "",
    not_in_terminal: str = "",
    **how: Any,
) -> Arg:
    """Return an argument; `how` is what argparse's `add_argument` takes."""
    return Arg(names, how, read, in_terminal, not_in_cell, not_in_terminal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One row: all that the front ends need to know of a verb."""

    name: str
    help: str  # one line
    call: Callable[[Any], Any]  # takes a `Call`
    about: str = ""  # what a magic's own help says instead
    epilog: str = ""
    usage: str = ""  # instead of what follows from the fields below
    runs: RunCount = ""
    agent: bool = False  # its first word is the name of an agent
    args: tuple[Arg, ...] = ()
    launches: Literal["", "agent", "chain"] = ""  # its magic has the flags of such a launch
    text: str = ""  # what is said in the cell's body, behind -- or as the last word in a terminal
    yaml: str = ""  # what the cell's body lists, or a file in a terminal
    in_cell: Callable[[Any, Any], Any] | None = None  # what a cell shows; what was returned, if None
    in_terminal: Callable[[Any, Any], int | None] | None = None  # prints it and returns the exit code, likewise
    fails: Callable[[Any], Any] | None = None  # whether the exit code is 1
    not_in_cell: str = ""  # why there is no such magic; empty where there is one
    not_in_terminal: str = ""
    magic_name: str = ""  # instead of subagent_NAME
    command_name: str = ""  # instead of NAME

    @property
    def magic(self) -> str:
        """The name of its magic."""
        return self.magic_name or f"subagent_{self.name}"

    @property
    def command(self) -> str:
        """The name of its subcommand in a terminal."""
        return self.command_name or self.name

    @property
    def prog(self) -> str:
        """Its magic as it is mostly written."""
        return f"%%{self.magic}" if self.yaml or self.launches else f"%{self.magic}"

    @property
    def described(self) -> str:
        """What the help of the magic begins with."""
        return self.about or f"{self.help[:1].upper()}{self.help[1:]}."

    @property
    def magic_usage(self) -> str:
        """What stands behind the magic."""
        return self.usage or _USAGES[self.runs] + (" -- TEXT" if self.text else "")

    @property
    def without_body(self) -> str:
        """What is wrong with a cell that says nothing; empty where that is right."""
        if self.yaml:
            return f"there are no {self.yaml}; write them in YAML in a %%{self.magic} cell"
        where = f"write it in a %%{self.magic} cell, or behind -- on the line"
        return f"there is no {self.text}; {where}" if self.text else ""

    def other_form(self, *, has_body: bool) -> str:
        """Return what is wrong with the form of the magic that was used, line or cell; empty where it may be used."""
        if has_body and not self.without_body:
            return f"a cell's body says nothing to it; write it as a line: %{self.magic}"
        return self.without_body if self.yaml and not has_body else ""


def count(least: int = 1) -> Read:
    """Return what reads a whole number of so much or more."""

    return partial(read_count, least=least)


def amount_of(unit: str = "") -> Read:
    """Return what reads an amount, as 200000, 200k or 1.5M, of `tokens` or `usd`, as $2; without a unit, if none is."""

    def read(given: str) -> float:
        from subagents_nb.domain.values.given import parse_amount

        amount, named = parse_amount(given)
        if named not in ("", unit):
            raise ValueError(f"{given!r} is an amount of {'money' if named == 'usd' else named}, and that takes none")
        if not 0 < amount < float("inf"):
            raise ValueError(f"{given!r} is no amount above 0")
        return amount

    return read
