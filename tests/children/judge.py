"""Judge runs as they are named on standard input: judge.py sweep|stop. Prints one line for each: what came of it."""

from __future__ import annotations

import contextlib
import sys

from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Run
from subagents_nb.store import open_home
from subagents_nb.supervisor.warm.reconcile import reconcile


def main(what: str) -> None:
    home = open_home()
    print("ready", flush=True)
    for line in sys.stdin:
        given = 0
        with contextlib.suppress(SubagentsError):
            if what == "sweep":
                given = len(reconcile(home, [line.strip()]))
            else:
                Run(home, line.strip()).stop("together")
                given = 1
        print(given, flush=True)


main(sys.argv[1])
