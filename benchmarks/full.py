"""What it takes to open a run of 20,000 events with one result of 7 MB, to look at that result, and to search it all.

Run it with `python -m benchmarks.full`. The goal is that it opens in less than 300 ms.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

EVENTS, RESULT_BYTES, TIMES = 20_000, 7_000_000, 30


def main() -> None:
    from support import make_plan, make_recovery, make_status, run_id

    from subagents_nb.launching import Run
    from subagents_nb.notebook.full.finding import places_of
    from subagents_nb.notebook.full.full_view import FullRequests
    from subagents_nb.notebook.full.parts import parts_of
    from subagents_nb.store import create_run, open_home

    home = open_home(Path(tempfile.mkdtemp(prefix="full-")) / "store")
    writer = create_run(home, make_plan(1), make_recovery(1))
    writer.status(make_status(1), milestone=False)
    run, paths = Run(home, run_id(1)), home.run(run_id(1))
    paths.events.write_text("".join(json.dumps(_event(n)) + "\n" for n in range(EVENTS)))
    paths.step(0).mkdir(parents=True, exist_ok=True)
    call = {"part_kind": "tool-call", "tool_name": "grep", "tool_call_id": "c0", "args": {"pattern": "x"}}
    gave = {
        "part_kind": "tool-return",
        "tool_name": "grep",
        "tool_call_id": "c0",
        "content": "row of it\n" * (RESULT_BYTES // 10),
    }
    (paths.step(0) / "session.json").write_text(json.dumps([{"kind": "response", "parts": [call, gave]}]))
    print(
        f"{EVENTS:,} events, {paths.events.stat().st_size / 1e6:.1f} MB; a result of {RESULT_BYTES / 1e6:g} MB; "
        f"n={TIMES}"
    )
    for what, work in {
        "opened": lambda: FullRequests(run).whole(),
        "the result of 7 MB": lambda: parts_of(run, 0, {}),
        "searched": lambda: places_of(run, "of it"),
    }.items():
        print(f"{what}: {_measured(work)}")


def _event(n: int) -> dict[str, object]:
    head = {"seq": n, "t": "2026-03-01T12:00:00.000Z", "s": n / 10, "step": 0}
    if n % 4:
        return {**head, "type": "text", "text": "words of an answer as it streams " * 4}
    return {**head, "type": "tool-started", "call": f"c{n}", "tool": "grep", "args": "pattern"}


def _measured(work: Callable[[], object]) -> str:
    spent = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        spent.append(1000 * (time.perf_counter() - began))
    return f"median {statistics.median(spent):.0f} ms ({min(spent):.0f} to {max(spent):.0f})"


if __name__ == "__main__":
    main()
