"""The budgets that only a real kernel can show: a cell, a live widget, and fifty of them."""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left

from benchmarks.figures import Figure
from benchmarks.kernel import Kernel
from benchmarks.places import Model
from benchmarks.writes import Write, Writes

_QUIET_S = 0.6  # a view that was silent so long shows the next change at once

_SETUP = """
import itertools
import time
from subagents_nb import launch, launching

def one_cell(task):
    begin = time.perf_counter()
    get_ipython().run_cell_magic("subagent", "-q --model loop:m scout", task)
    return (time.perf_counter() - begin) * 1000

def show(model, number):
    shown = [launch("scout", f"run {index}", model=model) for index in range(number)]
    for run in shown:
        run.display()
    return shown

def all_running(runs, within_s):
    end = time.monotonic() + within_s
    while any(run.state != "running" for run in runs) and time.monotonic() < end:
        time.sleep(0.1)
    return sum(run.state == "running" for run in runs)

def end_all(runs):
    for run in runs:
        run.stop()
    return len(launching.wait_for(timeout=30))
"""


def in_kernel(model: Model, *, cells: int, steps: int, seconds: float) -> list[Figure]:
    """Measure all that needs a kernel, in one kernel."""
    kernel = Kernel(model.root, model.work)
    try:
        kernel.run(_SETUP)
        return [
            _cell_to_handle(kernel, cells),
            *_status_to_page(kernel, model, runs=4, steps=steps),
            *_busy(kernel, model, 50, seconds),
        ]
    finally:
        kernel.close()


def _cell_to_handle(kernel: Kernel, times: int) -> Figure:
    samples = []
    for turn in range(times + 1):
        took = kernel.run(f"took = one_cell('say {turn}')\n_ = launching.wait_for(timeout=30)", "took")
        if turn:  # the first one waits for the supervisor to warm up
            samples.append(took)
    return Figure("cell → handle (%%subagent -q in a real kernel)", "ms", 25.0, tuple(samples))


def _status_to_page(kernel: Kernel, model: Model, *, runs: int, steps: int) -> list[Figure]:
    """Follow runs that say something every second, on disk and on the way to the page."""
    script = model.script("second", [{"text": "one more word "}, {"sleep": 1.0}] * steps)
    kernel.heard.clear()
    ids = kernel.run(f"shown = show({script!r}, {runs})", "[run.id for run in shown]")
    roots = {run_id: model.store.run(run_id).root for run_id in ids}
    writes = Writes()
    for root in roots.values():
        writes.follow(root)
    for root in roots.values():
        writes.ended_at(root, within_s=steps * 2 + 30)
    time.sleep(1.0)  # what was put in place last may still be on its way
    writes.close()
    shown = _shown(kernel)
    fresh: list[float] = []
    every: list[float] = []
    for run_id, root in roots.items():
        _pair(writes.statuses(root), shown[run_id], fresh, every)
    name = "status write → iopub message"
    return [
        Figure(f"{name}, a change after quiet", "ms", 50.0, tuple(fresh), "p95"),
        Figure(f"{name}, every change (a view shows four a second)", "ms", None, tuple(every), "p95"),
    ]


def _pair(written: list[Write], shown: list[tuple[float, float]], fresh: list[float], every: list[float]) -> None:
    """Find for each status the first message that is at least as new. A status is known by its working time."""
    elapsed = [one[0] for one in shown]
    for before, write in itertools.pairwise(written):
        at = bisect_left(elapsed, write.elapsed_s)
        if write.state != "running" or before.state != "running" or at == len(shown):
            continue  # the first is shown by the cell itself; at the end a card takes the widget's place
        took = (shown[at][1] - write.at) * 1000
        every.append(took)
        if write.at - before.at >= _QUIET_S:
            fresh.append(took)


def _shown(kernel: Kernel) -> dict[str, list[tuple[float, float]]]:
    """Return for each run what its widget was told: working time and arrival."""
    runs: dict[str, str] = {}
    told: dict[str, list[tuple[float, float]]] = {}
    for now, message in list(kernel.heard):
        content = message["content"]
        state = (content.get("data") or {}).get("state") or {} if message["msg_type"].startswith("comm_") else {}
        if message["msg_type"] == "comm_open" and "run_id" in state:
            runs[content["comm_id"]] = state["run_id"]
            told[state["run_id"]] = []
        elif "elapsed_s" in state and content["comm_id"] in runs:
            told[runs[content["comm_id"]]].append((state["elapsed_s"], now))
    return told


def _busy(kernel: Kernel, model: Model, number: int, seconds: float) -> list[Figure]:
    """Measure the share of a core that a kernel spends on live widgets: of silent runs, and of talking ones."""
    talking = model.script("talking", [{"text": "one more word "}, {"sleep": 1.0}] * 120)
    model.allow(number + 4)
    figures = []
    for what, script, goal in (("silent", "scripted:hang", 3.0), ("one line a second each", talking, None)):
        live = kernel.run(f"shown = show({script!r}, {number})\nlive = all_running(shown, 60)", "live")
        time.sleep(2.0)
        shares = []
        for _ in range(3):
            before, begin = kernel.cpu_s(), time.monotonic()
            time.sleep(seconds / 3)
            shares.append((kernel.cpu_s() - before) / (time.monotonic() - begin) * 100)
        kernel.run("ended = end_all(shown)")
        figures.append(Figure(f"kernel with {live} live runs as widgets, {what}", "% of a core", goal, tuple(shares)))
    model.allow()
    return figures
