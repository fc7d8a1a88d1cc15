"""Many launches from several processes at once, under a cap. `python -m benchmarks.crowd N` is one of the launchers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import subagents_nb
from benchmarks.figures import Figure
from benchmarks.places import Model
from subagents_nb.launching.following.waiting import wait_all
from subagents_nb.store import FileRuns, open_home
from subagents_nb.supervisor.protocol.reaching import ask, connect_queue

_TASK = "hold=1.0"  # long enough that the cap is reached and the queue is used
_LOOK_S = 0.02


def crowd(model: Model, number: int, processes: int, limit: int) -> list[Figure]:
    """Launch from several processes at once: all distinct, all ended well, and never more live than the cap."""
    model.allow(limit)
    os.environ["SUBAGENTS_NB_SPAWN"] = "warm"
    first = _said(_launcher(1))
    wait_all(model.store, first["ids"], 60)
    since = time.time()
    most, over = [0], threading.Event()
    looking = threading.Thread(target=_look, args=(first["supervisor"], most, over))
    looking.start()
    begin = time.perf_counter()
    launchers = [_launcher(number // processes) for _ in range(processes)]
    ids = [run_id for launcher in launchers for run_id in _said(launcher)["ids"]]
    wait_all(model.store, ids, 120)
    took = time.perf_counter() - begin
    over.set()
    looking.join()
    states = [FileRuns(model.store).snapshot(run_id).state for run_id in ids]
    at_once = _most_at_once([note for note in model.notes().values() if note["came"] > since])
    model.allow()
    name = f"{number} launches from {processes} processes, {limit} live"
    return [
        Figure(f"{name}: distinct runs", "runs", number, (len(set(ids)),), "exactly"),
        Figure(f"{name}: complete", "runs", number, (sum(state == "complete" for state in states),), "exactly"),
        Figure(f"{name}: most runner processes at once", "runs", limit, (most[0],)),
        Figure(f"{name}: most requests at the model at once", "runs", limit, (at_once,)),
        Figure(f"{name}: until the last one ended", "s", None, (took,)),
    ]


def _launcher(number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.crowd", str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _said(launcher: subprocess.Popen[str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(launcher.communicate()[0])
    return said


def _look(supervisor: int, most: list[int], over: threading.Event) -> None:
    """Count the living children of the supervisor again and again; looking at the places' locks would disturb them."""
    while not over.wait(_LOOK_S):
        most[0] = max(most[0], len(_living_children(supervisor)))


def _living_children(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(int(child))
    return found


def _most_at_once(notes: list[dict[str, Any]]) -> int:
    """Return how many requests were open at the same time."""
    changes = sorted([(note["came"], 1) for note in notes] + [(note["ended"], -1) for note in notes])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def main() -> None:
    """Launch as many runs as asked for, as fast as can be; print their ids and the process that keeps them."""
    number = int(sys.argv[1])
    runs = [subagents_nb.launch("scout", f"{_TASK} {os.getpid()}-{index}", model="loop:m") for index in range(number)]
    with contextlib.closing(connect_queue(open_home())) as lines:
        supervisor = int(ask(lines, {"op": "ping"})["pid"])
    print(json.dumps({"ids": [run.id for run in runs], "supervisor": supervisor}))


if __name__ == "__main__":
    main()
