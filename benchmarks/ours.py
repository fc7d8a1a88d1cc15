"""Our side of a sitting beside the peers: `python -m benchmarks.ours --reps N --out FILE`, in a process of its own.

The first launch meets no supervisor, as it does for a user; all others are warm. Like the peers', the model answers at
once, but for the memory, where it holds its answer back.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.figures import calib_ms
from benchmarks.measures import launched, one_group, runner_of
from benchmarks.places import Model, sitting
from benchmarks.writes import Writes

_SETTLE_S = 0.5


def main() -> None:
    """Measure single runs, their memory, 32 steps of one run, and eight runs at once; write what was found as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ours", description=__doc__)
    parser.add_argument("--reps", type=int, default=6)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with sitting() as model:
        found: dict[str, Any] = {"first": _one(model, "auto")}
        launched("warm", "wake the supervisor")[0].wait(60)
        found["launch"] = [_one(model, "auto") for _ in range(options.reps - 1)]
        found["memory"] = [_memory() for _ in range(3)]
        found["group"] = [one_group(32, 8) for _ in range(max(1, options.reps // 3))]
        found["burst"] = [_burst(8) for _ in range(max(1, options.reps // 3))]
    options.out.write_text(json.dumps(found, indent=1))


def _one(model: Model, mode: str) -> dict[str, float]:
    time.sleep(_SETTLE_S)
    calib = calib_ms()
    writes = Writes()
    run, task, wall, took = launched(mode, "say hi")
    root = run.home.run(run.id).root
    writes.follow(root)
    run.wait(60)
    woke, ended = time.time(), writes.ended_at(root)
    writes.close()
    note = model.notes()[task]
    return {
        "handle_ms": took,
        "request_ms": (note["came"] - wall) * 1000,
        "status_ms": (ended - note["ended"]) * 1000,
        "notice_ms": (woke - note["ended"]) * 1000,
        "calib_ms": calib,
    }


def _memory() -> dict[str, float]:
    """Look at the processes of one run that waits for its model, and at the supervisor that all runs share."""
    run, *_ = launched("auto", "hold=2.5")
    runner = runner_of(run)
    time.sleep(0.7)
    own = [one.memory_full_info() for one in (runner, *runner.children(recursive=True))]
    shared = psutil.Process(runner.ppid())
    beside = shared.memory_full_info() if "subagents_nb.supervisor.host" in shared.cmdline() else None
    run.wait(30)
    found = {name: sum(getattr(one, name) for one in own) / 2**20 for name in ("uss", "pss", "rss")}
    if beside is not None:
        found |= {"shared_uss": beside.uss / 2**20, "shared_pss": beside.pss / 2**20}
    return {**found, "processes": len(own)}


def _burst(number: int) -> float:
    """Return the seconds from the first of several launches to the last terminal status."""
    time.sleep(_SETTLE_S)
    writes = Writes()
    begin, roots = time.time(), []
    for index in range(number):
        run, *_ = launched("auto", f"say {index}")
        roots.append(run.home.run(run.id).root)
        writes.follow(roots[-1])
    last = max(writes.ended_at(root, 60) for root in roots)
    writes.close()
    return last - begin


if __name__ == "__main__":
    os.environ.pop("SUBAGENTS_NB_SPAWN", None)
    main()
