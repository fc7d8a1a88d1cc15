"""The budgets of launching, running and reading. Each function returns figures with samples in the budget's unit."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

import subagents_nb
from benchmarks.figures import Figure
from benchmarks.places import Model, pointed_at
from benchmarks.writes import Writes
from subagents_nb.launching import Run


def launched(mode: str, text: str) -> tuple[Run, str, float, float]:
    """Launch one run; return it, its task, when that was, and how many milliseconds it took."""
    os.environ["SUBAGENTS_NB_SPAWN"] = mode
    task = f"{text} {secrets.token_hex(6)}"
    wall, begin = time.time(), time.perf_counter()
    run = subagents_nb.launch("scout", task, model="loop:m")
    return run, task, wall, (time.perf_counter() - begin) * 1000


def single_runs(model: Model, mode: str, times: int) -> list[Figure]:
    """Launch single runs one after another and follow each from the call to the waking handle."""
    handle, first, status, woke = [], [], [], []
    writes = Writes()
    for turn in range(times + 1):
        run, task, wall, took = launched(mode, "hold=0.05")
        writes.follow(run.home.run(run.id).root)
        run.wait(30)
        now = time.time()
        written = writes.ended_at(run.home.run(run.id).root)
        note = model.notes()[task]
        if turn == 0 and mode == "warm":
            continue  # the first one waits for the supervisor to warm up
        handle.append(took)
        first.append((note["came"] - wall) * 1000)
        status.append((written - note["ended"]) * 1000)
        woke.append((now - note["ended"]) * 1000)
    writes.close()
    goals = (None, 60.0, 15.0, 40.0) if mode == "warm" else (None, 900.0, None, None)
    names = (
        "launch() → handle",
        "launch → first model request",
        "last byte → terminal status",
        "last byte → handle awake",
    )
    rows = zip(names, goals, (handle, first, status, woke), strict=True)
    return [Figure(f"{name}, {mode}", "ms", goal, tuple(samples)) for name, goal, samples in rows]


def runner_of(run: Run) -> psutil.Process:
    """Wait until a run streams and return its process."""
    deadline = time.monotonic() + 20
    while not run.status.tail and time.monotonic() < deadline:
        time.sleep(0.01)
    status = run.status.status
    assert status is not None
    assert status.runner is not None
    return psutil.Process(status.runner.pid)


def private_memory(mode: str, times: int) -> Figure:
    """Measure the private memory of runs that hold their model request."""
    samples = []
    for _ in range(times):
        run, *_ = launched(mode, "hold=1.0")
        samples.append(runner_of(run).memory_full_info().uss / 2**20)
        run.wait(30)
    return Figure(f"private memory (USS) of a run, {mode}", "MiB", 25.0 if mode == "warm" else None, tuple(samples))


def burst(model: Model, number: int, limit: int, times: int) -> Figure:
    """Launch many runs at once and wait for all: what a fan-out of single runs costs."""
    model.allow(limit)
    samples = []
    for _ in range(times):
        begin = time.perf_counter()
        runs = [launched("warm", f"say {index}")[0] for index in range(number)]
        for run in runs:
            run.wait(60)
        samples.append(time.perf_counter() - begin)
    model.allow()
    return Figure(f"{number} single runs at once, {limit} live, zero-latency model", "s", None, tuple(samples))


def one_group(number: int, concurrency: int) -> float:
    """Launch one run of a parallel group; return the seconds until it is complete."""
    mark = secrets.token_hex(6)
    steps = [subagents_nb.step("scout", f"say {index} {mark}") for index in range(number)]
    group = subagents_nb.parallel(*steps, concurrency=concurrency)
    begin = time.perf_counter()
    run = subagents_nb.launch(group, model="loop:m")
    run.wait(60)
    took = time.perf_counter() - begin
    assert [str(step.state) for step in run.steps] == ["complete"] * number, run.error
    return took


def groups(number: int, concurrency: int, times: int) -> Figure:
    """Measure many tasks of one run against a model that answers at once."""
    os.environ["SUBAGENTS_NB_SPAWN"] = "warm"
    samples = [one_group(number, concurrency) for _ in range(times)]
    return Figure(f"{number} tasks in one run, concurrency {concurrency}, zero-latency model", "s", 1.5, tuple(samples))


def listing(store: Path, number: int, goal: float) -> list[Figure]:
    """List a store of finished runs, copied from one real run; then what a person sees first, its newest twenty."""
    from subagents_nb.domain.values.ids import make_run_id
    from subagents_nb.store import FileRuns, StoreHome, open_home

    source = Path(os.environ["SUBAGENTS_NB_HOME"]) / "runs"
    pattern = next(path for path in source.iterdir() if (path / "result.json").is_file())
    home = open_home(store)
    result = (pattern / "result.json").read_text()
    for index in range(number):
        run_id = make_run_id(1_700_000_000_000 + index, secrets.randbits(50))
        (home.runs / run_id).mkdir()
        (home.runs / run_id / "result.json").write_text(result.replace(pattern.name, run_id))
    samples, pages = [], []
    for _ in range(5):
        begin = time.perf_counter()
        found = list(FileRuns(StoreHome(store)).all())
        samples.append((time.perf_counter() - begin) * 1000)
        assert len(found) == number
    with pointed_at(store):
        for _ in range(5):
            begin = time.perf_counter()
            page = subagents_nb.runs(limit=20)
            pages.append((time.perf_counter() - begin) * 1000)
            assert len(page) == 20
    return [
        Figure(f"list {number:,} runs", "ms", goal, tuple(samples)),
        Figure(f"runs(limit=20) of {number:,}", "ms", 100.0, tuple(pages)),
    ]


_PROBES: Sequence[tuple[str, float, str, str]] = (
    ("import subagents_nb", 60.0, "import IPython.core.interactiveshell", "import subagents_nb"),
    (
        "%load_ext subagents_nb",
        120.0,
        # Any kernel has loaded asyncio.
        "import asyncio; from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()",
        "import subagents_nb; subagents_nb.load_ipython_extension(s)",
    ),
)


def imports(times: int) -> list[Figure]:
    """Measure what importing and loading cost beyond IPython itself, in fresh interpreters."""
    figures = []
    for name, goal, before, code in _PROBES:
        text = f"import time\n{before}\nt = time.perf_counter()\n{code}\nprint((time.perf_counter() - t) * 1000)"
        samples = [float(subprocess.check_output([sys.executable, "-c", text])) for _ in range(times + 1)]
        figures.append(Figure(name, "ms", goal, tuple(samples[1:])))  # the first one writes bytecode
    return figures
