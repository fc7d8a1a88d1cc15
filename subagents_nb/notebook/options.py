"""The options of the magics: our own parser, since magics need quotes kept, help that returns, and near misses."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from IPython.core.error import UsageError

_DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|min|h)?\Z")
FOREVER = "forever"


class HelpShown(Exception):
    """Help was asked for and printed; there is nothing more to do."""


class MagicParser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving the process, and names the nearest flag."""

    def __init__(self, magic: str, description: str, *, epilog: str = "") -> None:
        super().__init__(
            prog=magic,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("-h", "--help", action="store_true", help="show this help and do nothing")

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(f"{self.prog}: {message.rstrip('.')}. {self.prog} -h shows them all.")

    def read(self, line: str) -> argparse.Namespace:
        """Parse a magic's line.

        Raises:
            UsageError: it can't be understood; the nearest flag is named.
            HelpShown: help was asked for and is on the screen.
        """
        try:
            tokens = shlex.split(line, comments=True)
        except ValueError as error:
            self.error(f"the line can't be read ({str(error).lower()}); check its quotes")
        if "-h" in tokens or "--help" in tokens:
            sys.stdout.write(self.format_help())
            raise HelpShown
        try:
            found, unknown = self.parse_known_args(_join_wait(tokens))
        except argparse.ArgumentError as error:
            self.error(str(error))
        if unknown:
            self._refuse(unknown)
        return found

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        flag = next((token for token in unknown if token.startswith("-")), unknown[0])
        if not flag.startswith("-"):
            self.error(f"{flag!r} is one word too many; quote values that have spaces")
        name = flag.split("=", 1)[0]
        near = difflib.get_close_matches(name, self.flags(), n=1, cutoff=0.5)
        hint = f"; perhaps you mean {near[0]}" if near else ""
        self.error(f"there is no flag {name}{hint}")

    def flags(self) -> list[str]:
        """Return all flags."""
        return sorted(option for action in self._actions for option in action.option_strings)

    def help_of(self, flag: str) -> str:
        """Return what a flag does."""
        action = self._option_string_actions.get(flag)
        return str(action.help or "") if action else ""


def _join_wait(tokens: list[str]) -> list[str]:
    """Bind the optional value of --wait: only a length of time belongs to it, any other word is the agent."""
    joined: list[str] = []
    rest = iter(range(len(tokens)))
    for index in rest:
        word = tokens[index]
        if word == "--wait":
            following = tokens[index + 1] if index + 1 < len(tokens) else ""
            if _DURATION.match(following):
                word, _ = f"--wait={following}", next(rest)
            else:
                word = f"--wait={FOREVER}"
        joined.append(word)
    return joined


def subagent_parser() -> MagicParser:
    """Return the parser of %%subagent and %subagent."""
    parser = MagicParser(
        "%%subagent",
        "Start a detached run: an agent works on the cell's body as its task, in a process of its own that\n"
        "survives the cell, the kernel and the notebook server. Returns the Run at once.",
        epilog="As a line: %subagent scout -o found -- Which columns look wrong?\n"
        "See also %subagent_status, _wait, _stop, _attach, _agents, _doctor.",
    )
    add = parser.add_argument
    add("agent", nargs="?", help="which agent; see %%subagent_agents")
    add("-o", "--output", dest="bind", metavar="NAME", help="bind the Run to this variable")
    add("--name", help="a name to find the run by")
    add("--model", help="provider:model, provider/model:thinking, local:smollm2, scripted:NAME or ENDPOINT:model")
    add("--thinking", metavar="LEVEL", help="off, minimal, low, medium, high, xhigh or max")
    add(
        "--schema",
        metavar="NAME",
        help="a pydantic model, dataclass, TypedDict or JSON Schema of yours; types the result",
    )
    add("--cwd", metavar="DIR", help="where the agent works; it can't leave this directory")
    add("--timeout", metavar="TIME", help="deadline of the run: seconds, or 90s, 30m, 1.5h")
    add(
        "--wait",
        metavar="TIME",
        nargs="?",
        const=FOREVER,
        help="wait for the end, or for so long; the run goes on anyway",
    )
    add("--tag", action="append", default=[], metavar="WORD", help="a word to find the run by; may be repeated")
    add("--template", action="store_true", default=None, help="fill {{ name }} in the task from your variables")
    add("--dry-run", action="store_true", help="show the whole plan and its digest; start nothing")
    add("--force", action="store_true", help="let -o replace a builtin or a module")
    add("-q", "--quiet", action="store_true", default=None, help="show nothing; the run still starts")
    return parser


def run_parser(
    magic: str, description: str, *, many: bool = False, optional: bool = False, **extra: Any
) -> MagicParser:
    """Return the parser of a magic that is about runs that exist."""
    parser = MagicParser(magic, description)
    nargs = "*" if many else "?" if optional else None
    parser.add_argument("run", nargs=nargs, help="a run's id, name, or at least 8 characters of its id")
    for flag, (metavar, text) in extra.items():
        parser.add_argument(f"--{flag}", metavar=metavar, help=text)
    return parser
