"""Read one run until it has ended, as fast as can be: reader.py RUN_ID.

Prints `reading` when it has begun, then how the run ended and how often it was read.
"""

from __future__ import annotations

import sys

from subagents_nb.store import FileRuns, open_home


def main(run_id: str) -> None:
    runs, last, told, reads = FileRuns(open_home()), 0, 0, 0
    while True:
        snapshot = runs.snapshot(run_id)
        reads += 1
        if reads == 1:
            print("reading", flush=True)
        assert not snapshot.damage, snapshot.damage
        if snapshot.status is not None:
            assert snapshot.status.seq >= last, f"went back from {last} to {snapshot.status.seq}"
            end = snapshot.status.steps[0].tail_end
            assert end >= told, f"forgot text: {told} to {end}"
            last, told = snapshot.status.seq, end
        if snapshot.ended:
            break
    print(snapshot.state, reads)


main(sys.argv[1])
