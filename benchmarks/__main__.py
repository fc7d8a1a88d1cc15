"""`python -m benchmarks [--quick]`: measure the budgets, print them, and write their section of RESULTS.md."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks import agents, commands, experiments, measures
from benchmarks.cells import in_kernel
from benchmarks.crowd import crowd
from benchmarks.figures import Figure, measured, table
from benchmarks.places import Model, sitting
from benchmarks.results import put_section, where

_SECTION = "Budgets"
_LEGEND = (
    "`make bench` writes this table, against a model on loopback. Nothing is asserted: a goal is met by the median, by "
    "the 95th percentile, or exactly, as its column says. *calib* is a fixed loop on one thread, before/after each "
    "measure: rows whose figures differ much from the least were taken on a busy machine."
)


def main() -> None:
    """Measure every budget that exists by now."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions; RESULTS.md is left as it is")
    quick = parser.parse_args().quick
    head = where()
    with sitting() as model:
        figures = _measure(model, quick)
    print(f"{head}\n\n{table(figures)}")
    if not quick:
        put_section(_SECTION, f"{head}.\n\n{_LEGEND}\n\n{table(figures)}")


def _measure(model: Model, quick: bool) -> list[Figure]:
    times = 3 if quick else 20
    figures = measured(lambda: in_kernel(model, cells=times, steps=5 if quick else 30, seconds=6.0 if quick else 15.0))
    figures += measured(lambda: measures.single_runs(model, "warm", times))
    figures += measured(lambda: measures.single_runs(model, "cold", max(2, times // 3)))
    figures += measured(lambda: measures.private_memory("warm", 2 if quick else 8))
    figures += measured(lambda: measures.private_memory("cold", 2 if quick else 3))
    figures += measured(lambda: measures.groups(32, 8, 2 if quick else 10))
    figures += measured(lambda: measures.burst(model, 32, 8, 1 if quick else 3))
    figures += measured(lambda: measures.burst(model, 32, 32, 1 if quick else 3))
    figures += measured(lambda: crowd(model, 200, 2, 16))
    with tempfile.TemporaryDirectory() as folder:
        figures += measured(lambda: measures.listing(Path(folder) / "a", 1_000, 60.0))
        figures += measured(lambda: measures.listing(Path(folder) / "b", 10_000, 600.0))
        figures += measured(lambda: commands.sandboxed(Path(folder) / "d", times))
        figures += measured(lambda: experiments.frame_of(Path(folder) / "c", 10_000, 2.0))
    figures += measured(lambda: experiments.sweep_of(200, 10.0))
    figures += measured(lambda: agents.preflight_among(200, 200, times))
    figures += measured(lambda: agents.delegation(model, times))
    figures += measured(lambda: measures.imports(2 if quick else 5))
    return figures


if __name__ == "__main__":
    main()
