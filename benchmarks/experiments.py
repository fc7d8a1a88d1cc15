"""Sweeps and tables of many runs."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.places import pointed_at


def sweep_of(number: int, goal: float) -> Figure:
    """Launch a sweep of one-word tasks on the scripted engine and wait for all of them."""
    from subagents_nb import launch, sweep

    launch("scout", "warm up", model="scripted:echo", wait=True)
    begin = time.perf_counter()
    grid = {"n": list(range(number)), "once": [secrets.token_hex(4)]}
    swept = sweep("scout", "say {{n}} {{once}}", grid=grid, model="scripted:echo", wait=True)
    seconds = time.perf_counter() - begin
    assert len(swept.done) == number
    return Figure(f"a sweep of {number}", "s", goal, (seconds,))


def frame_of(store: Path, number: int, goal: float) -> Figure:
    """Make a table of finished runs with scores, copied from one real run."""
    from subagents_nb import frame, launch
    from subagents_nb.domain.values.ids import make_run_id
    from subagents_nb.store import open_home

    run = launch("scout", "count", model="scripted:echo", experiment="bench", params={"n": 1}, fresh=True, wait=True)
    run.score("accuracy", 0.5)
    pattern = run.home.run(run.id).root
    names = ("plan.json", "status.json", "result.json")
    texts = {name: (pattern / name).read_text() for name in (*names, *(f"scores/{p.name}" for p in _scores(pattern)))}
    home = open_home(store)
    for index in range(number):
        run_id = make_run_id(1_700_000_000_000 + index, secrets.randbits(50))
        (home.runs / run_id / "scores").mkdir(parents=True)
        for name, text in texts.items():
            (home.runs / run_id / name).write_text(text.replace(run.id, run_id))
    samples = []
    with pointed_at(store):
        for _ in range(3):
            begin = time.perf_counter()
            table = frame()
            samples.append(time.perf_counter() - begin)
            assert len(table) == number
    return Figure(f"a table of {number:,} runs", "s", goal, tuple(samples))


def _scores(run: Path) -> list[Path]:
    return sorted((run / "scores").glob("*.json"))
