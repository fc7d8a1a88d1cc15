"""The same verbs in a terminal: `subagents-nb list|status|chain|wait|stop|steer|append|resume|gc|…`; see `--help`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from subagents_nb.errors import RequestError, SubagentsError
from subagents_nb.notebook.verbs.call import Call
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import NARGS, Arg, Read, Verb
from subagents_nb.terminal import complain, say
from subagents_nb.version import __version__

_MAGIC = re.compile(r"%%?(subagent_\w+)")
_MOST_CHARS = 4 * 1024**2  # of a chain's file


def main(argv: Sequence[str] | None = None, verbs: Sequence[Verb] = VERBS) -> int:
    """Run one command; return the exit code: 0 well, 1 refused or failed, 2 bad usage, 130 interrupted."""
    options = make_parser(verbs).parse_args(argv)
    try:
        return _carry_out(options.verb, options)
    except SubagentsError as error:
        complain(f"subagents-nb: {_for_terminals(str(error), verbs)}")
        return 1
    except KeyboardInterrupt as interrupt:
        complain(f"\n{interrupt or 'Interrupted.'}")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _carry_out(verb: Verb, options: argparse.Namespace) -> int:
    call = Call(options, _body(options.file) if verb.yaml else getattr(options, "text", ""))
    done = verb.call(call)
    if verb.in_terminal is not None:
        return verb.in_terminal(call, done) or 0
    from subagents_nb.notebook.verbs.looking import text_of

    say(text_of(done))
    return int(verb.fails is not None and bool(verb.fails(done)))


def _for_terminals(text: str, verbs: Sequence[Verb]) -> str:
    """Return a reason with what is typed in a cell as it is typed here, where there is such a command."""
    commands = {verb.magic: verb.command for verb in verbs if not verb.not_in_terminal}
    return _MAGIC.sub(lambda found: f"subagents-nb {commands[found[1]]}" if found[1] in commands else found[0], text)


def make_parser(verbs: Sequence[Verb] = VERBS) -> argparse.ArgumentParser:
    """Return the parser of the terminal: a subcommand for each verb that makes sense there."""
    parser = argparse.ArgumentParser(prog="subagents-nb", description="Look after the subagents of your notebooks.")
    parser.add_argument("--version", action="version", version=f"subagents-nb {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for verb in verbs:
        if not verb.not_in_terminal:
            _fill(commands.add_parser(verb.command, help=verb.help.replace("%", "%%")), verb)
    return parser


def _fill(parser: argparse.ArgumentParser, verb: Verb) -> None:
    parser.set_defaults(verb=verb)
    if verb.runs:
        parser.add_argument("run", nargs=NARGS[verb.runs], help="id, name, or at least 8 characters of the id")
    for one in verb.args:
        if not one.not_in_terminal:
            parser.add_argument(*one.names, **_how(one))
    if verb.text:
        parser.add_argument("text")
    if verb.yaml:
        parser.add_argument("file", help="the file; - reads from standard input")


def _how(arg: Arg) -> dict[str, Any]:
    read = {} if arg.read is None else {"type": _type(arg.read)}
    return {**arg.how, **read, **arg.in_terminal}


def _type(read: Read) -> Callable[[str], Any]:
    def value(given: str) -> Any:
        try:
            return read(given)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value


def _body(file: str) -> str:
    """Return the text of a file that is named on the command line.

    Raises:
        RequestError: it can't be read.
    """
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:  # a pipe of the shell's too
            text = opened.read(_MOST_CHARS + 1)
        if len(text) > _MOST_CHARS:
            raise RequestError(f"{file} is larger than {_MOST_CHARS // 1024**2} MiB, so it is no chain.")
        return text
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{file} can't be read: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
