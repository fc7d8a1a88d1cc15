"""What a sweep says of its cells, and which of many are shown."""

from __future__ import annotations

from datetime import UTC, datetime

from support import make_result, make_status

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.sweeps.sweep_cells import (
    Reading,
    SweepCell,
    first_to_see,
    reading_of,
    sweep_line,
    tally,
    whence_text,
)


def place(number: int, state: RunState | None, *, asks: bool = False) -> SweepCell:
    return SweepCell({"n": number}, 0, Reading(state, f"run-{number}", asks))


def test_every_cell_is_counted_once() -> None:
    readings = [Reading(state, "") for state in RunState] + [Reading(None, ""), None, None]

    counts = tally(readings)

    assert counts == {"cells": 12, "done": 2, "live": 2, "paused": 1, "failed": 4, "stopped": 1, "missing": 2}
    assert sum(counts.values()) == 2 * counts["cells"]
    assert (
        sweep_line("s", counts, "why")
        == "<Sweep s: 2 of 12 done, 2 live, 1 paused, 4 failed, 1 stopped, 2 missing; why>"
    )
    assert sweep_line("s", tally([None]), "", launching=True) == "<Sweep s: 0 of 1 done, 1 to come>"
    assert sweep_line("s", tally([]), "") == "<Sweep s: 0 of 0 done>"
    assert sweep_line("s", tally([]), whence_text(3, 1), "why") == "<Sweep s: 0 of 0 done; 3 found, 1 launched; why>"
    assert whence_text(0, 4) == ""


def test_a_small_sweep_is_shown_as_it_is() -> None:
    places = [place(1, RunState.COMPLETE), place(0, None), SweepCell({"n": 2}, 0, None)]

    assert first_to_see(places, 3) == (places, "")


def test_of_a_large_one_what_failed_comes_first_then_what_is_at_work_in_the_order_of_the_grid() -> None:
    states = [RunState.COMPLETE] * 100
    states[90], states[40], states[70], states[95] = RunState.RUNNING, RunState.LOST, RunState.FAILED, RunState.RUNNING
    places = [place(n, state) for n, state in enumerate(states)]
    places[99] = place(99, RunState.RUNNING, asks=True)
    places[10] = place(10, RunState.QUEUED)
    places.append(SweepCell({"n": 100}, 0, None))

    shown, others = first_to_see(places, 6)
    assert [one.params["n"] for one in shown] == [0, 40, 70, 90, 95, 99]
    assert others == "93 complete, 1 queued, 1 missing"
    assert [one.params["n"] for one in first_to_see(places, 3)[0]] == [40, 70, 99]


def test_a_name_from_a_file_is_one_line() -> None:
    assert reading_of(Snapshot(run_id="r", status=make_status(name="a\nb"))).name == "a b"
    ended = reading_of(Snapshot(run_id="r", result=make_result()))
    assert (ended.word, ended.live, reading_of(Snapshot(run_id="r")).word) == ("complete", False, "unreadable")


def test_a_run_works_since_it_had_a_place_not_since_it_was_launched() -> None:
    status = make_status(started_at="2026-12-01T00:00:00Z", updated_at="2026-12-01T00:10:00Z", elapsed_s=30.0)
    began = reading_of(Snapshot(run_id="r", status=status)).working_since

    assert began == datetime(2026, 12, 1, 0, 9, 30, tzinfo=UTC).timestamp()
    assert reading_of(Snapshot(run_id="r", result=make_result())).working_since is None
