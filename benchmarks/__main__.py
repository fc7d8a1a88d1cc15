"""`python -m benchmarks [--quick]`: measure, print, and write RESULTS.md."""

from __future__ import annotations

import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import measures
from benchmarks.places import sitting

RESULTS = Path(__file__).with_name("RESULTS.md")
_HEAD = "| what | median | min–max | n | unit | goal | |\n| --- | ---: | ---: | ---: | --- | ---: | --- |"


def main() -> None:
    """Measure every budget that exists by now."""
    quick = "--quick" in sys.argv
    times = 5 if quick else 20
    figures: list[measures.Figure] = []
    with sitting() as model:
        figures += measures.single_runs(model, "warm", times)
        figures += measures.single_runs(model, "cold", max(3, times // 3))
        figures.append(measures.private_memory("warm", 3 if quick else 8))
        figures.append(measures.private_memory("cold", 3))
        figures.append(measures.burst(32))
        figures.append(measures.watching(50, 5.0 if quick else 10.0))
        with tempfile.TemporaryDirectory() as folder:
            figures.append(measures.listing(Path(folder) / "a", 1_000, 60.0))
            figures.append(measures.listing(Path(folder) / "b", 10_000, 600.0))
    figures += measures.imports(5)
    table = "\n".join([_HEAD, *(figure.row() for figure in figures)])
    print(table)
    if not quick:
        day = datetime.now(UTC).date()
        where = f"Python {platform.python_version()}, {platform.system()}, against a model on loopback."
        RESULTS.write_text(f"# Measured\n\n{day}, {where} `make bench` writes this table.\n\n{table}\n")


if __name__ == "__main__":
    main()
