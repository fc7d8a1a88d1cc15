"""The verbs of the terminal about many runs: compare them, launch again what failed."""

from __future__ import annotations

import argparse
from typing import Any

from subagents_nb.errors import RequestError
from subagents_nb.terminal import say


def add_verbs(commands: Any) -> None:
    """Add them to the parser of the terminal."""
    comparing = commands.add_parser("compare", help="compare runs by the parameters in which they differ")
    comparing.add_argument("run", nargs="*", help="ids or names; else all of an experiment")
    comparing.add_argument("--experiment", metavar="NAME", help="the runs of this experiment")
    comparing.add_argument("--baseline", metavar="NAME=VALUE", help="what the others are held against")
    for flag, about in (
        ("--by", "a parameter that makes the groups"),
        ("--metric", "a score or figure to show"),
        ("--lower", "a score of which less is better"),
    ):
        comparing.add_argument(flag, action="append", default=[], metavar="NAME", help=f"{about}; may be repeated")
    comparing.set_defaults(command=_compare)
    retrying = commands.add_parser("retry", help="launch again those of the runs that failed, by their own plans")
    retrying.add_argument("run", nargs="*", help="ids or names; else all of an experiment")
    retrying.add_argument("--experiment", metavar="NAME", help="the runs of this experiment")
    retrying.set_defaults(command=_retry)


def _meant(options: argparse.Namespace) -> list[Any]:
    from subagents_nb import launching

    chosen: list[Any] = list(options.run)
    if options.experiment is not None:
        chosen.append(launching.runs(experiment=options.experiment))
    if not chosen:
        raise RequestError("Say which runs: ids or names, or --experiment NAME.")
    return chosen


def _compare(options: argparse.Namespace) -> int:
    from subagents_nb.experiments import compare

    found = compare(
        _meant(options),
        baseline=options.baseline,
        by=options.by or None,
        metrics=options.metric or None,
        lower=options.lower,
    )
    say(found.text)
    return 0


def _retry(options: argparse.Namespace) -> int:
    from subagents_nb.experiments import retry

    for run in retry(_meant(options)):
        say(f"{run.name} works in a process of its own. See it: subagents-nb status {run.id}")
    return 0
