"""What was measured, how it is judged, and how it is printed."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

_HEAD = (
    "| what | median | p95 | min–max | n | unit | goal | | calib ms |\n"
    "| --- | ---: | ---: | ---: | ---: | --- | ---: | --- | ---: |"
)
_LOOP = 300_000

# How the goal is meant: of the median, of the 95th percentile, or as the one right number.
Judged = Literal["median", "p95", "exactly"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: samples, their unit, the goal, and the calibration loop before and after."""

    name: str
    unit: str
    goal: float | None
    samples: tuple[float, ...]
    judged: Judged = "median"
    calib: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        """Say whether the goal is met; nothing without a goal, and nothing is asserted."""
        if self.goal is None or not self.samples:
            return ""
        match self.judged:
            case "median":
                met = statistics.median(self.samples) <= self.goal
            case "p95":
                met = p95(self.samples) <= self.goal
            case "exactly":
                met = set(self.samples) == {self.goal}
        return "met" if met else "missed"

    def row(self) -> str:
        """Return a line of the table."""
        median = number(statistics.median(self.samples)) if self.samples else ""
        tail = number(p95(self.samples)) if self.judged == "p95" and self.samples else ""
        goal = (
            "" if self.goal is None else f"{self.goal:g}" + {"p95": " p95", "exactly": " exactly"}.get(self.judged, "")
        )
        calib = "/".join(f"{one:.1f}" for one in self.calib)
        cells = (self.name, median, tail, span(self.samples), len(self.samples), self.unit, goal, self.verdict, calib)
        return "| " + " | ".join(str(cell) for cell in cells) + " |"


def number(value: float) -> str:
    """Return a number with as many digits as mean something."""
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def span(samples: Sequence[float]) -> str:
    """Return the least and the greatest."""
    return f"{number(min(samples))}–{number(max(samples))}" if samples else ""


def p95(samples: Sequence[float]) -> float:
    """Return the value that 95 of 100 samples do not exceed."""
    return sorted(samples)[max(0, -(-len(samples) * 95 // 100) - 1)]


def calib_ms() -> float:
    """Time a fixed loop on one thread: a sitting on a contended machine shows in it.

    The work is that of the peers' driver (`calib_ms` there), so that the figures can be compared: it
    took 8 to 10 on the quiet machine of the first study.
    """
    begin, total = time.perf_counter(), 0
    for index in range(_LOOP):
        total += index * index
    return (time.perf_counter() - begin) * 1000


def measured(measure: Callable[[], Figure | Iterable[Figure]]) -> list[Figure]:
    """Measure between two calibrations and give each figure both."""
    before = calib_ms()
    found = measure()
    figures = [found] if isinstance(found, Figure) else list(found)
    calib = (before, calib_ms())
    return [dataclasses.replace(figure, calib=calib) for figure in figures]


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as a table."""
    return "\n".join([_HEAD, *(figure.row() for figure in figures)])
