"""The parsers of the magics, made from the table of verbs. Help, `?` and completion come from them as well."""

from __future__ import annotations

from collections.abc import Iterable

from subagents_nb.domain.plans.options import of_launch
from subagents_nb.notebook.magics.experiment_flags import add_experiment_flags
from subagents_nb.notebook.magics.line_parser import MagicParser
from subagents_nb.notebook.verbs.arguments import BINDING, WAITING
from subagents_nb.notebook.verbs.verb import NARGS, Arg, Verb

_RUN = "a variable that holds the run, its name, its id, or at least 8 characters of the id"


def magic_parser(verb: Verb) -> MagicParser:
    """Return the parser of a verb's magic."""
    parser = MagicParser(verb.prog, verb.described, usage=verb.magic_usage, epilog=verb.epilog)
    if verb.runs:
        parser.add_argument("run", nargs=NARGS[verb.runs], help=_RUN)
    _add_all(parser, (one for one in verb.args if not one.not_in_cell))
    if verb.launches == "agent":
        _add_launch(parser)
    elif verb.launches == "chain":
        _add_chain(parser)
    return parser


def _add_launch(parser: MagicParser) -> None:
    parser.add_argument("agent", nargs="?", help="which agent; see %%subagent_agents")
    _add_all(parser, BINDING)
    parser.add_argument(
        "--schema",
        metavar="NAME",
        help="a pydantic model, dataclass, TypedDict or JSON Schema of yours; types the result",
    )
    _add_launching(parser, chain=False)
    parser.add_argument(
        "--template", action="store_true", default=None, help="fill {{ name }} in the task from your variables"
    )


def _add_chain(parser: MagicParser) -> None:
    _add_all(parser, BINDING)
    _add_launching(parser, chain=True)
    parser.add_argument(
        "--template", action="store_true", default=None, help="fill {{ name }} in its texts from your variables"
    )


def _add_launching(parser: MagicParser, *, chain: bool) -> None:
    add = parser.add_argument
    for option in of_launch(chain=chain):
        option.add_to(add, chain=chain)
    add("--inputs", metavar="NAMES", help="variables of yours that the agent gets copies of: df,config,fig")
    add("--max-input-mb", metavar="NUMBER", help="how much they may take together (100)")
    _add_all(parser, WAITING)
    add(
        "--no-queue", action="store_true", default=None, help="refuse when no place is free, instead of waiting for one"
    )
    add("--tag", action="append", default=[], metavar="WORD", help="a word to find the run by; may be repeated")
    add("--reuse", metavar="WHICH", help="which run like it may stand in: tracked (unchanged files), complete, never")
    add("--fresh", action="store_true", help="start a new run even if there is one like it")
    add("--dry-run", action="store_true", help="show the whole plan and its digest; start nothing")
    add_experiment_flags(parser)


def _add_all(parser: MagicParser, args: Iterable[Arg]) -> None:
    for one in args:
        parser.add(one)
