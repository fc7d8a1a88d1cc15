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


def main(count: int, workers: int) -> None:
    subagents_nb.launch(task="first", model="scripted:echo").result(60)
    threading.Event().wait(1.0)
    before = held()
    with ThreadPoolExecutor(workers) as pool:
        made = list(pool.map(lambda n: subagents_nb.launch(task=f"number {n}", model="scripted:echo"), range(count)))
    found = [(run.id, run.result(100)) for run in made]
    rest = threading.Event()
    for _ in range(100):  # the watcher rests when nobody follows, and its native part a moment later
        after = held()
        if after[0] <= before[0] + 3 and after[1] <= before[1]:
            break
        rest.wait(0.05)
    kinds = []
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            kinds.append(os.readlink(f"/proc/self/fd/{handle}"))
    print(json.dumps({"found": found, "before": before, "after": after, "kinds": kinds}))


main(int(sys.argv[1]), int(sys.argv[2]))
