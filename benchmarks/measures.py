"""One function a budget. Each returns samples in the budget's unit."""

from __future__ import annotations

import os
import secrets
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

import subagents_nb
from benchmarks.places import Model
from subagents_nb.launching import Run


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: samples, their unit, the goal."""

    name: str
    unit: str
    goal: float | None
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def row(self) -> str:
        """Return a line of the table."""
        low, high = min(self.samples), max(self.samples)
        goal = f"{self.goal:g}" if self.goal is not None else ""
        verdict = "" if self.goal is None else ("met" if self.median <= self.goal else "missed")
        cells = (self.name, f"{self.median:.1f}", f"{low:.1f}–{high:.1f}", len(self.samples), self.unit, goal, verdict)
        return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _launch(mode: str, text: str) -> tuple[Run, str, float, float]:
    os.environ["SUBAGENTS_NB_SPAWN"] = mode
    task = f"{text} {secrets.token_hex(6)}"
    wall, begin = time.time(), time.perf_counter()
    run = subagents_nb.launch("scout", task, model="loop:m")
    return run, task, wall, (time.perf_counter() - begin) * 1000


def single_runs(model: Model, mode: str, times: int) -> list[Figure]:
    """Launch single runs one after another and follow each from the call to the waking handle."""
    handle, first, status, woke = [], [], [], []
    for number in range(times + 1):
        run, task, wall, took = _launch(mode, "hold=0.05")
        run.wait(30)
        now = time.time()
        note = model.notes()[task]
        if number == 0 and mode == "warm":
            continue  # the first one waits for the supervisor to warm up
        written = (run.home.run(run.id).status).stat().st_mtime
        handle.append(took)
        first.append((note["came"] - wall) * 1000)
        status.append((written - note["ended"]) * 1000)
        woke.append((now - note["ended"]) * 1000)
    goals = (25.0, 60.0, 15.0, 40.0) if mode == "warm" else (None, 900.0, None, None)
    names = (
        "launch → handle",
        "launch → first model request",
        "last byte → terminal status",
        "last byte → handle awake",
    )
    rows = zip(names, goals, (handle, first, status, woke), strict=True)
    return [Figure(f"{name}, {mode}", "ms", goal, tuple(samples)) for name, goal, samples in rows]


def private_memory(mode: str, times: int) -> Figure:
    """Measure the private memory of runs that hold their model request."""
    samples = []
    for _ in range(times):
        run, *_ = _launch(mode, "hold=1.0")
        deadline = time.monotonic() + 20
        while not run.status.tail and time.monotonic() < deadline:
            time.sleep(0.01)
        status = run.status.status
        assert status is not None
        assert status.runner is not None
        samples.append(psutil.Process(status.runner.pid).memory_full_info().uss / 1e6)
        run.wait(30)
    return Figure(f"private memory (USS) of a run, {mode}", "MB", 25.0, tuple(samples))


def listing(store: Path, number: int, goal: float) -> Figure:
    """List a store of finished runs, copied from one real run."""
    from subagents_nb.domain.ids import make_run_id
    from subagents_nb.store import FileRuns, StoreHome, open_home

    source = Path(os.environ["SUBAGENTS_NB_HOME"]) / "runs"
    pattern = next(path for path in source.iterdir() if (path / "result.json").is_file())
    home = open_home(store)
    result = (pattern / "result.json").read_text()
    for index in range(number):
        run_id = make_run_id(1_700_000_000_000 + index, secrets.randbits(50))
        (home.runs / run_id).mkdir()
        (home.runs / run_id / "result.json").write_text(result.replace(pattern.name, run_id))
    samples = []
    for _ in range(5):
        begin = time.perf_counter()
        found = list(FileRuns(StoreHome(store)).all())
        samples.append((time.perf_counter() - begin) * 1000)
        assert len(found) == number
    return Figure(f"list {number:,} runs", "ms", goal, tuple(samples))


def imports(times: int) -> list[Figure]:
    """Measure what importing and loading cost beyond IPython itself, in fresh interpreters."""
    probes = (
        ("import subagents_nb", 60.0, "import IPython.core.interactiveshell", "import subagents_nb"),
        (
            "%load_ext subagents_nb",
            120.0,
            "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()",
            "import subagents_nb; subagents_nb.load_ipython_extension(s)",
        ),
    )
    figures = []
    for name, goal, before, code in probes:
        text = f"import time\n{before}\nt = time.perf_counter()\n{code}\nprint((time.perf_counter() - t) * 1000)"
        samples = [float(subprocess.check_output([sys.executable, "-c", text])) for _ in range(times)]
        figures.append(Figure(name, "ms", goal, tuple(samples)))
    return figures


def watching(number: int, seconds: float) -> Figure:
    """Measure the share of a core that watching live runs costs the process that holds their handles."""
    from subagents_nb.launching.watch import WATCHER

    os.environ["SUBAGENTS_NB_SPAWN"] = "warm"
    runs = [subagents_nb.launch("scout", "tick", model="scripted:hang") for _ in range(number)]
    stops = [WATCHER.follow(run.home, run.id, lambda _: None) for run in runs]
    time.sleep(1.0)
    before, begin = time.process_time(), time.monotonic()
    time.sleep(seconds)
    share = (time.process_time() - before) / (time.monotonic() - begin) * 100
    for run in runs:
        run.stop()
    for run in runs:
        run.wait(20)
    for stop in stops:
        stop()
    return Figure(f"watching {number} live runs", "% of a core", 3.0, (share,))


def burst(number: int) -> Figure:
    """Launch many runs at once and wait for all: what a fan-out of single runs costs."""
    os.environ["SUBAGENTS_NB_SPAWN"] = "warm"
    samples = []
    for _ in range(3):
        begin = time.perf_counter()
        runs = [subagents_nb.launch("scout", f"say {index}", model="loop:m") for index in range(number)]
        for run in runs:
            run.wait(60)
        samples.append(time.perf_counter() - begin)
    return Figure(f"{number} single runs at once, zero-latency model", "s", None, tuple(samples))
