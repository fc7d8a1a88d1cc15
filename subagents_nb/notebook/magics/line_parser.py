"""The options of the magics: our own parser, for quotes (ipython/ipython#12729), help that returns, near misses."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from IPython.core.error import UsageError

from subagents_nb.domain.values.durations import looks_like_duration
from subagents_nb.domain.values.faults import nearest
from subagents_nb.notebook.verbs.verb import FOREVER, Arg, Read, amount_of, count
from subagents_nb.plain_text import plain
from subagents_nb.terminal import say


class HelpShown(Exception):
    """Help was asked for and printed; there is nothing more to do."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in the width of a notebook cell, the flags in a column of their own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)


class MagicParser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving the process, and names the nearest flag."""

    def __init__(self, magic: str, description: str, *, usage: str = "[FLAGS]", epilog: str = "") -> None:
        super().__init__(
            prog=magic,
            usage=f"%(prog)s {usage}",
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            formatter_class=_Help,
        )
        self._read_by: list[Arg] = []
        self.add_argument("-h", "--help", action="store_true", help="show this help and do nothing")

    def add(self, arg: Arg) -> None:
        """Add an argument of a verb."""
        self.add_argument(*arg.names, **arg.how)
        if arg.read is not None:
            self._read_by.append(arg)

    def read_values(self, options: argparse.Namespace) -> list[str]:
        """Replace the words behind flags by what they mean; return what is wrong with them."""
        faults = []
        for arg in self._read_by:
            word, read = getattr(options, arg.dest), arg.read
            try:
                setattr(options, arg.dest, word if word is None or read is None else read(word))
            except ValueError as error:
                faults.append(f"{arg.names[0]}: {error}")
        return faults

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise self._usage_error(message)

    def _usage_error(self, message: str) -> UsageError:
        missing = message.removeprefix("the following arguments are required: ")
        text = message.rstrip(".") if missing == message else f"say which {missing}"
        error = UsageError(plain(f"{self.prog}: {text}. See {self.prog} -h."))
        error.problem = plain(text)  # type: ignore[attr-defined]  # no class of ours: IPython shows this very one in a line
        return error

    def read(
        self, line: str, note: Callable[[UsageError], None] | None = None, *, beside_help: str = ""
    ) -> argparse.Namespace:
        """Parse a magic's line.

        `note` is told each fault instead, and what can be understood is returned: a cell has other faults to tell.
        `beside_help` is said below the help, where that is asked for.

        Raises:
            UsageError: it can't be understood; all that is wrong is told, with the nearest flags.
            HelpShown: help was asked for and is on the screen.
        """
        try:
            tokens = shlex.split(_without_comment(line))
        except ValueError as error:
            self.error(f"the line can't be read ({str(error).lower()}); check its quotes")
        if "-h" in tokens or "--help" in tokens:
            say(self.format_help(), end="")
            if beside_help:
                say(f"\nHere, {beside_help}.")
            raise HelpShown
        faults: list[str] = []
        options = self._understood(_join_wait(tokens), faults)
        if faults and note is None:
            self.error("; ".join(faults))
        if note is not None:
            for fault in faults:
                note(self._usage_error(fault))
        return options

    def _understood(self, tokens: list[str], faults: list[str]) -> argparse.Namespace:
        """Parse the words without those that are at fault."""
        while True:
            try:
                options, unknown = self.parse_known_args(tokens)
            except argparse.ArgumentError as error:
                faults.append(_plain_fault(error))
                tokens = self._without(tokens, set((error.argument_name or "").split("/")))
                continue
            except UsageError:  # a word that must be there is missing, perhaps as it stands behind such a flag
                if faults:
                    self.error("; ".join(faults))
                raise
            flag = next((word for word in unknown if word.startswith("-")), None)
            if flag is None:
                faults += [f"{word!r} is one word too many; quote values that have spaces" for word in unknown[:1]]
                return options
            name = flag.split("=", 1)[0]
            near = nearest(name, self.flags())
            hint = f"; perhaps you mean {near}" if near else ""
            faults.append(f"there is no flag {name}{hint}")
            at = tokens.index(flag)
            suggestions = [near + flag[len(name) :]] if near else []  # taken for it: its value is looked at as well
            value = not near and "=" not in flag and not _is_flag(tokens[at + 1 : at + 2])
            tokens = tokens[:at] + suggestions + tokens[at + 1 + value :]

    def _without(self, tokens: list[str], names: set[str]) -> list[str]:
        """Return the words without the last flag of these names.

        Raises:
            UsageError: there is none, so that nobody knows which word is at fault.
        """
        places = [at for at, word in enumerate(tokens) if word.split("=", 1)[0] in names]
        for at in reversed(places):
            if "=" in tokens[at] or _is_flag(tokens[at + 1 : at + 2]) or at + 1 == len(tokens):
                return tokens[:at] + tokens[at + 1 :]
        raise self._usage_error("the line can't be read")

    def flags(self) -> list[str]:
        """Return all flags."""
        return sorted(option for action in self._actions for option in action.option_strings)

    def help_of(self, flag: str) -> str:
        """Return what a flag does."""
        action = self._option_string_actions.get(flag)
        return str(action.help or "") if action else ""

    def takes_value(self, flag: str) -> bool:
        """Whether the word behind a flag belongs to it. `--wait` may stand alone."""
        action = self._option_string_actions.get(flag)
        return action is not None and action.nargs is None


def _without_comment(line: str) -> str:
    """Cut a trailing comment, which IPython takes for arguments (ipython/ipython#13012): a # that begins a word.

    Not one in quotes, nor that of `--tag issue#12`.
    """
    return next((line[:at] for at, before in _unquoted(line) if line[at] == "#" and before.isspace()), line)


def split_text(line: str) -> tuple[str, str | None]:
    """Split a line at the first ` -- ` outside of quotes: what stands behind it is a text, verbatim."""
    padded = f" {line} "
    for at, _ in _unquoted(padded):
        if padded.startswith(" -- ", at):
            return padded[:at].strip(), padded[at + 4 :].strip()
    return line, None


def _unquoted(line: str) -> Iterator[tuple[int, str]]:
    """Yield where a character stands outside of quotes that nothing escapes, and what stands before it."""
    quote, before, at = "", " ", 0
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield at, before
        before = char
        at += 1


def _plain_fault(error: argparse.ArgumentError) -> str:
    flag = (error.argument_name or "").split("/")[-1]
    if error.message == "expected one argument":
        return f"{flag} needs a value"
    if error.message.startswith("ignored explicit argument"):
        return f"{flag} takes no value"
    return str(error)


def _is_flag(words: Sequence[str]) -> bool:
    """Whether the word that is there, if one is, begins like a flag."""
    return any(word.startswith("-") and word != "-" and not word[1:2].isdigit() for word in words)


def _join_wait(tokens: list[str]) -> list[str]:
    """Bind the optional value of --wait: only a length of time belongs to it, any other word is the agent."""
    joined: list[str] = []
    rest = iter(range(len(tokens)))
    for index in rest:
        word = tokens[index]
        if word == "--wait":
            following = tokens[index + 1] if index + 1 < len(tokens) else ""
            if looks_like_duration(following):
                word, _ = f"--wait={following}", next(rest)
            else:
                word = f"--wait={FOREVER}"
        joined.append(word)
    return joined


def number(parser: MagicParser, flag: str, given: str | None, *, least: int = 1) -> Any:
    """Return a flag's number; a UsageError says that it is none."""
    return _value(parser, flag, given, count(least))


def amount(parser: MagicParser, flag: str, given: str | None, unit: str = "") -> Any:
    """Return a flag's amount of this unit, likewise."""
    return _value(parser, flag, given, amount_of(unit))


def _value(parser: MagicParser, flag: str, given: str | None, read: Read) -> Any:
    try:
        return None if given is None else read(given)
    except ValueError as error:
        parser.error(f"{flag}: {error}")
