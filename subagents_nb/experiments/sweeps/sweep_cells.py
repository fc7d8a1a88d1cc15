"""The cells of a sweep as they stand: which run, how far it is, what there is to say of all. Pure."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from subagents_nb.domain.plans.experiments import ParamValue
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.words import one_line

DONE = (RunState.COMPLETE, RunState.PARTIAL)
_NO_SCORES: Mapping[str, float] = MappingProxyType({})


class Reading(NamedTuple):
    """What a sweep says of one of its runs. The state is None if nothing of the run can be read."""

    state: RunState | None
    name: str
    asks: bool = False  # a question of its waits for the person
    run_id: str = ""
    cost: float | None = None  # so far, in USD; None where nobody knows
    tokens: int = 0
    seconds: float | None = None  # it took; None while it lives
    working_since: float | None = None  # in seconds since 1970, without what it waited in line; while it lives
    error: str = ""  # why it failed

    @property
    def live(self) -> bool:
        """Whether it is at work or waits for its turn."""
        return self.state is not None and self.state.live

    @property
    def word(self) -> str:
        """Return its state in a word."""
        return "unreadable" if self.state is None else str(self.state)


class SweepCell(NamedTuple):
    """One cell: its parameters, which repetition it is, and how its run stands; None without one."""

    params: Mapping[str, ParamValue]
    repeat: int
    reading: Reading | None
    scores: Mapping[str, float] = _NO_SCORES


def reading_of(snapshot: Snapshot) -> Reading:
    """Return what a sweep says of a run as it was read."""
    usage = snapshot.usage
    return Reading(
        snapshot.state,
        one_line(snapshot.name, 80),
        bool(snapshot.questions),
        snapshot.run_id,
        usage.cost_usd,
        usage.input_tokens + usage.output_tokens,
        snapshot.elapsed_s if snapshot.ended else None,
        _working_since(snapshot),
        one_line(snapshot.error or "", 300),
    )


def _working_since(snapshot: Snapshot) -> float | None:
    """Return since when a run works that does; it was launched before that, and may have waited in line."""
    if snapshot.status is None or snapshot.ended:
        return None
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(snapshot.status.updated_at).timestamp() - snapshot.elapsed_s
    return None


def tally(readings: Iterable[Reading | None]) -> dict[str, int]:
    """Return how many cells there are, and how many are done, live, paused, failed, stopped, and without a run."""
    listed = list(readings)
    there = [reading for reading in listed if reading is not None]
    counts = {
        "done": sum(reading.state in DONE for reading in there),
        "live": sum(reading.live for reading in there),
        "paused": sum(reading.state is RunState.PAUSED for reading in there),  # it stands for its cell, and can go on
        "stopped": sum(reading.state is RunState.STOPPED for reading in there),
    }
    failed = len(there) - sum(counts.values())
    return {"cells": len(listed), **counts, "failed": failed, "missing": len(listed) - len(there)}


def tally_text(counts: Mapping[str, int], *, launching: bool = False) -> str:
    """Say these numbers: `3 of 8 done, 2 live, 1 failed, 2 missing`."""
    words = {kind: kind for kind in ("live", "paused", "failed", "stopped")} | {"missing": no_run(launching=launching)}
    head = f"{counts['done']} of {counts['cells']} done"
    return ", ".join([head, *(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])])


def no_run(*, launching: bool) -> str:
    """Say that a cell has no run; while others are still launched, its own may follow."""
    return "to come" if launching else "missing"


def whence_text(found: int, launched: int) -> str:
    """Say how many runs of a sweep were there already; empty where none was."""
    return f"{found} found, {launched} launched" if found else ""


def sweep_line(name: str, counts: Mapping[str, int], *remarks: str, launching: bool = False) -> str:
    """Return a whole sweep in one line."""
    line = "; ".join(filter(None, [tally_text(counts, launching=launching), *remarks]))
    return f"<Sweep {name}: {line}>"


def first_to_see(places: Sequence[SweepCell], most: int, *, launching: bool = False) -> tuple[list[SweepCell], str]:
    """Return the cells that a bounded table shows, in the order of the grid, and what the others are, in words.

    Those that ask or failed come before those at work, and these before the rest.
    """
    nothing = no_run(launching=launching)
    ranked = sorted(range(len(places)), key=lambda number: (_rank(places[number].reading), number))
    shown = set(ranked[:most])
    unseen = (place.reading for number, place in enumerate(places) if number not in shown)
    others = Counter(nothing if reading is None else reading.word for reading in unseen)
    left = ", ".join(f"{number:,} {word}" for word, number in others.items())
    return [place for number, place in enumerate(places) if number in shown], left


def _rank(reading: Reading | None) -> int:
    if reading is None or reading.state in DONE or reading.state is RunState.QUEUED:
        return 2
    return 1 if reading.live and not reading.asks else 0
