"""The verbs of the terminal about chains, about what a live run may still use, about work in worktrees."""

from __future__ import annotations

import argparse
import sys

from subagents_nb.errors import RequestError
from subagents_nb.terminal import complain, hand_over, say

ASKED_BY = "a terminal"
_MOST_CHARS = 4 * 1024**2  # of a chain's file
_RETUNED: dict[str | None, str] = {
    "accepted": "retuned.",
    "queued": "it waits for a free place and begins with these limits.",
    "too-late": "nothing was changed, for the run is ending already.",
}


def retune(options: argparse.Namespace) -> int:
    """Change the limits of a live run."""
    from subagents_nb import launching

    run = launching.attach(options.run)
    answer = run.retune(
        timeout=options.timeout,
        tool_timeout=options.tool_timeout,
        max_requests=options.max_requests,
        concurrency=options.concurrency,
        tokens=options.tokens,
        cost_usd=options.cost,
        asked_by=ASKED_BY,
    )
    outcome = answer.outcome if answer is not None else None
    say(f"{run.name}: {_RETUNED.get(outcome, 'the run is busy and hears of it later.')}")
    return int(outcome == "too-late")


def launch_chain(options: argparse.Namespace) -> int:
    """Launch the chain of a YAML file."""
    from subagents_nb import launching
    from subagents_nb.domain.plan import Origin
    from subagents_nb.notebook.chain_cell import parse

    parsed = parse(_body(options.file), {}, lines_above=0, lenient=True)
    how = {"model": options.model, "name": options.name, "timeout": options.timeout, "origin": Origin(surface="cli")}
    if parsed.faults:
        parsed.refuse(lambda flow: launching.preflight(flow, **how).reasons)
    with parsed.locating():
        run = launching.launch(parsed.chain, **how)
    say(f"{run.name} works in a process of its own. See it: subagents-nb status {run.id}")
    return 0


def append(options: argparse.Namespace) -> int:
    """Append the items of a YAML file to a live chain."""
    from subagents_nb import launching
    from subagents_nb.launching.appending import AppendRefused
    from subagents_nb.notebook.chain_cell import parse

    run = launching.attach(options.run)
    parsed = parse(_body(options.file), {}, lines_above=0)
    try:
        answer = run.append(parsed.chain, asked_by=ASKED_BY)
    except AppendRefused as refused:
        raise AppendRefused(parsed.located(refused.reasons)) from refused
    say(f"{run.name}: {answer.text if answer is not None else 'the run is busy and takes them in later'}")
    return 0


def diff(options: argparse.Namespace) -> int:
    """Print a patch as git takes it; on a screen without what could steer the terminal."""
    from subagents_nb import launching

    patch = launching.attach(options.run).diff(options.step)
    hand_over(patch)
    if not patch:
        complain("No changes.")
    return 0


def apply(options: argparse.Namespace) -> int:
    """Put the changes of a run into the repository it was launched from, or only try it."""
    from subagents_nb import launching
    from subagents_nb.domain.words import one_line

    run = launching.attach(options.run)
    paths = run.apply(options.step, check=options.check)
    files = f"{len(paths)} file{'' if len(paths) == 1 else 's'}"
    say(f"{run.name}: {files} {'can be' if options.check else 'were' if len(paths) != 1 else 'was'} changed:")
    for path in paths:
        say(f"  {one_line(path, 400)}")
    return 0


def discard(options: argparse.Namespace) -> int:
    """Remove the worktrees of a run that were kept."""
    from subagents_nb import launching

    for path in launching.attach(options.run).discard(options.step):
        say(f"removed {path}")
    return 0


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
