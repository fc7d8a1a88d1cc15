"""Launch many runs one after another, wait for all, and say what was found: many.py COUNT WORKERS."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import subagents_nb


def held() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def at_rest() -> tuple[int, int]:
    """Return what is held once nothing changes any more: the watcher's native part ends a moment after its thread."""
    pause, before = threading.Event(), held()
    for _ in range(50):
        pause.wait(0.2)
        now = held()
        if now == before and now[1] == 1:
            break
        before = now
    return before


def main(count: int, workers: int) -> None:
    subagents_nb.launch(task="first", model="scripted:echo").result(60)
    before = at_rest()
    with ThreadPoolExecutor(workers) as pool:
        made = list(pool.map(lambda n: subagents_nb.launch(task=f"number {n}", model="scripted:echo"), range(count)))
    found = [(run.id, run.result(100)) for run in made]
    after = at_rest()
    kinds = []
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            kinds.append(os.readlink(f"/proc/self/fd/{handle}"))
    print(json.dumps({"found": found, "before": before, "after": after, "kinds": kinds}))


main(int(sys.argv[1]), int(sys.argv[2]))
