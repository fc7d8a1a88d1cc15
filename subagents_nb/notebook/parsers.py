"""The parsers of the magics, made from the table of verbs. Help, `?` and completion come from them as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from subagents_nb.notebook.experiment_flags import add_experiment_flags
from subagents_nb.notebook.options import MagicParser
from subagents_nb.notebook.verbs.table import BINDING, VERBS, WAITING
from subagents_nb.notebook.verbs.verb import NARGS, Arg, Verb
from subagents_nb.notebook.work_flags import add_terms, add_work_flags

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


# By the magic's name.
PARSERS: dict[str, Callable[[], MagicParser]] = {
    verb.magic: partial(magic_parser, verb) for verb in VERBS if not verb.not_in_cell
}


def _add_launch(parser: MagicParser) -> None:
    parser.add_argument("agent", nargs="?", help="which agent; see %%subagent_agents")
    _add_all(parser, BINDING)
    _add_models(parser)
    parser.add_argument(
        "--schema",
        metavar="NAME",
        help="a pydantic model, dataclass, TypedDict or JSON Schema of yours; types the result",
    )
    _add_launching(parser)
    add_work_flags(parser)
    parser.add_argument(
        "--template", action="store_true", default=None, help="fill {{ name }} in the task from your variables"
    )


def _add_chain(parser: MagicParser) -> None:
    _add_all(parser, BINDING)
    _add_models(parser)
    _add_launching(parser)
    add = parser.add_argument
    add_terms(parser)
    add("--max-requests", metavar="NUMBER", help="how often each step may ask its model")
    add("--max-children", metavar="NUMBER", help="how many steps the chain may ever start (64)")
    add("--tool-budget", metavar="NUMBER", help="how many tool calls each step may make")
    add("--usage-budget", metavar="AMOUNT", help="what all steps together may use: tokens, as 200k, or money, as '$2'")
    add("--template", action="store_true", default=None, help="fill {{ name }} in its texts from your variables")


def _add_models(parser: MagicParser) -> None:
    add = parser.add_argument
    add("--name", help="a name to find the run by")
    add("--model", help="provider:model, provider/model:thinking, local:smollm2, scripted:NAME or ENDPOINT:model")
    add("--thinking", metavar="LEVEL", help="off, minimal, low, medium, high, xhigh or max")


def _add_launching(parser: MagicParser) -> None:
    add = parser.add_argument
    add("--cwd", metavar="DIR", help="where the agent works; it can't leave this directory")
    add("--inputs", metavar="NAMES", help="variables of yours that the agent gets copies of: df,config,fig")
    add("--max-input-mb", metavar="NUMBER", help="how much they may take together (100)")
    add("--timeout", metavar="TIME", help="deadline of the run: seconds, or 90s, 30m, 1.5h")
    add("--tool-timeout", metavar="TIME", help="how long one tool call may take")
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
