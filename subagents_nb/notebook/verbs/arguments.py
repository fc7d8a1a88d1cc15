"""The arguments that several verbs have, and why some of them are not for a terminal or not for a cell."""

from __future__ import annotations

from subagents_nb.notebook.verbs.verb import FOREVER, Arg, arg, count

NO_VARIABLES = "a terminal has no variables"
_WAIT_APART = "`wait` waits, and nothing is shown"
OF_THE_STORE = "it is about the whole store, in which other notebooks keep their runs too"

BINDING = (
    arg("-o", "--bind", metavar="NAME", help="bind the Run to this variable", not_in_terminal=NO_VARIABLES),
    arg("--force", action="store_true", help="let -o replace a builtin or a module", not_in_terminal=NO_VARIABLES),
)
WAITING = (
    arg(
        "--wait", metavar="TIME", nargs="?", const=FOREVER, not_in_terminal=_WAIT_APART,
        help="wait for the end, or for so long; the run goes on anyway",
    ),
    arg(
        "-q", "--quiet", action="store_true", default=None, not_in_terminal=_WAIT_APART,
        help="show nothing; the run still starts",
    ),
)  # fmt: skip
LISTING = (
    arg("--state", metavar="STATE", help="only runs in this state, live, or asking"),
    arg("--asking", action="store_true", help="only runs that wait for your answer"),
    arg("--here", action="store_true", help="only runs of this notebook", not_in_terminal="it is in no notebook"),
    arg("--notebook", metavar="FILE", help="only runs of this notebook, as it is named from here"),
    arg("--cell", metavar="ID", help="only runs of the cell with this id"),
    arg("--phase", metavar="WORD", help="only runs that name this phase, or have a step that does"),
    arg("--lane", metavar="WORD", help="only runs that name this lane, or have a step that does"),
    arg("--workflow", metavar="ID", help="only runs that are part of this run of a workflow elsewhere"),
    arg("-n", "--number", metavar="NUMBER", read=count(0), default="20", help="at most so many ended runs (20)"),
)
REASON = arg("--reason", metavar="TEXT", default="", help="why, for the record")
EXPERIMENT = arg("--experiment", metavar="NAME", help="the runs of this experiment")
PROJECT = arg("--project", metavar="DIR", help="the project they belong to (the current directory)")
AGENT = arg("name", help="the agent")
SCOPE = arg(
    "--scope",
    metavar="WHERE",
    default="user",
    help="user: for all projects of yours (the default); project: for this one",
)
TEMPLATE = arg(
    "--template", action="store_true", default=None, help="fill {{ name }} in its texts from your variables",
    not_in_terminal=NO_VARIABLES,
)  # fmt: skip
AS_A_LAUNCH = "the flags of a launch have it"


def step_arg(about: str) -> Arg:
    """Return the flag that names one step."""
    return arg("--step", metavar="NUMBER", read=count(0), help=about)


def many_arg(flag: str, about: str) -> Arg:
    """Return a flag that may be repeated."""
    return arg(flag, action="append", default=[], metavar="NAME", help=f"{about}; repeatable")
